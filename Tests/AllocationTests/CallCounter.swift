import BroadsideTestSupport
import Foundation

/// What a run of the command allocated and how often it counted references, synced and started
/// threads.
struct CallCounts {
    private var numbers: [String: Int] = [:]

    static let names = [
        "own_allocations", "openssl_allocations", "retains", "releases", "accesses", "objects",
        "syncs", "threads",
    ]

    /// Reads what the shim wrote.
    init(text: String) throws {
        for line in text.split(separator: "\n") {
            let words = line.split(separator: " ")
            guard words.count == 2, let number = Int(words[1]) else {
                throw TestFailure("no count: \(line)")
            }
            numbers[String(words[0])] = number
        }
        for name in Self.names where numbers[name] == nil {
            throw TestFailure("the shim did not count \(name): \(text)")
        }
    }

    subscript(name: String) -> Int { numbers[name]! }
}

/// `Tests/Shims/count-calls.c`, compiled for this machine.
struct CallCounter {
    private let directory: TemporaryDirectory
    private let library: String
    private let command: String

    init() throws {
        directory = try TemporaryDirectory()
        library = try Shim.compile("count-calls", in: directory)
        command = try Self.command(in: directory)
    }

    /// The command with Swift's libraries in files of their own, as no shim stands before functions in
    /// the command's own file. `tools/checked-build` links the libraries into it: then its objects are
    /// linked again.
    private static func command(in directory: TemporaryDirectory) throws -> String {
        let path = try Broadside.path()
        let libraries = try Subprocess.run("ldd", [path], in: directory).output
        if libraries.contains("libswiftCore.so") { return path }
        let linked = "\(directory.path)/broadside"
        try Subprocess.run(
            "swiftc",
            [
                "-emit-executable", "-o", linked, "-Xlinker", "--gc-sections", "-Xlinker",
                "--defsym=main=BroadsideCLI_main", "@\(path).product/Objects.LinkFileList",
            ], in: directory)
        return linked
    }

    /// Sends so many rows to the simulator, over so many connections, and counts.
    func send(rows: Int, to simulation: Simulation, _ more: [String]) throws -> CallCounts {
        let campaign = try Campaign(rows: rows)
        let counts = "\(campaign.directory.path)/counts"
        let arguments =
            [
                "send", "--tokens", campaign.list, "--payload", campaign.payloadFile,
                "--endpoint", simulation.endpoint, "--ledger", campaign.ledger,
                "--progress", "none", "--summary", "-",
            ] + (try simulation.credentials()) + more
        let process = try Subprocess(
            command, arguments, in: campaign.directory,
            environment: ["LD_PRELOAD": library, "COUNT_FILE": counts])
        let finished = try process.wait(limit: 120)
        guard finished.exitCode == 0 else {
            throw TestFailure("send ended with \(finished.exitCode): \(finished.errors)")
        }
        let accepted = try SendSummary(json: finished.output).accepted
        guard accepted == rows else { throw TestFailure("\(accepted) of \(rows) were accepted") }
        return try CallCounts(text: String(contentsOfFile: counts, encoding: .utf8))
    }
}
