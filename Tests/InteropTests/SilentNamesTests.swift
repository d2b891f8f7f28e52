import BroadsideTestSupport
import Foundation
import Testing

/// Name servers that never reply: a lookup takes minutes, and nobody waits for it who has decided to end.
@Suite(.serialized, .timeLimit(.minutes(60)))
struct SilentNamesTests {
    /// A name server of a test's own, and the files by which one process, and no other, asks it.
    private final class Names {
        let directory: TemporaryDirectory
        private let server: PythonServer
        private let hosts: String

        /// - Parameter after: Seconds after which the name server replies; nil: it never does.
        init(known: Bool, after: Double? = nil) throws {
            directory = try TemporaryDirectory()
            let address =
                "127.\((1...250).randomElement()!).\(getpid() >> 8 & 0x7f).\(getpid() & 0x7f)"
            let delay = after.map { ["--after", "\($0)"] } ?? []
            server = try PythonServer(
                "silent_names.py", ["--address", address] + delay, in: directory)
            // Three times half a minute: longer than any test here waits for a process.
            try directory.write(
                "nameserver \(address)\noptions timeout:30 attempts:3\n", to: "resolv.conf")
            hosts = try directory.write(known ? "127.0.0.1 \(Self.name)\n" : "", to: "hosts")
        }

        /// The one of `TestAuthority.otherName`.
        static let name = "push.example"

        /// Starts the command with these files in the place of the system's.
        func start(_ arguments: [String]) throws -> Subprocess {
            let script = """
                mount --bind \(directory.path)/resolv.conf /etc/resolv.conf
                mount --bind \(hosts) /etc/hosts
                exec "$@"
                """
            return try Subprocess(
                "unshare",
                ["--mount", "bash", "-c", script, "bash", Broadside.path()] + arguments,
                in: directory)
        }

        /// From now on nobody but the name server knows the name.
        func forget() throws {
            let file = open(hosts, O_WRONLY | O_TRUNC | O_CLOEXEC)
            #expect(file >= 0)
            close(file)
        }

        /// Whether a lookup is on its way.
        var isAsked: Bool { questions > 0 }

        /// How many questions came: two for a look-up, one for each kind of address.
        var questions: Int { server.output.split(separator: "\n").count { $0 == "asked" } }
    }

    /// Whether this user may mount what nobody else sees, and be a name server.
    static let isAllowed: Bool = {
        guard geteuid() == 0, let directory = try? TemporaryDirectory() else { return false }
        return
            (try? Subprocess.run(
                "unshare", ["--mount", "mount", "-t", "tmpfs", "none", directory.path],
                in: directory))
            != nil
    }()

    private static let limit = 60.0

    @Test(.enabled(if: isAllowed))
    func `A run with a silent name server gives up after --give-up-after`() throws {
        let names = try Names(known: false)
        let campaign = try Campaign(rows: 20)
        let process = try names.start(
            campaign.arguments(to: "\(Names.name):2197", ["--give-up-after", "2s"]))
        let sent = try process.wait(limit: Self.limit)
        // A busy name server may see the question later.
        for _ in 0..<3000 where !names.isAsked { usleep(20_000) }
        #expect(names.isAsked)
        #expect(sent.exitCode == 1, "\(sent.errors)")
        let place = "\(Names.name):2197"
        #expect(
            sent.errors.contains("gave up on \(place): no response for 2 s (no name server has"),
            "\(sent.errors)")
        #expect(sent.errors.contains("to the look-up of \(Names.name))"), "\(sent.errors)")
        #expect(sent.errors.contains("/etc/resolv.conf"), "\(sent.errors)")
        // Nothing was sent: no ledger is left.
        #expect(access(campaign.ledger, F_OK) != 0)
    }

    @Test(.enabled(if: isAllowed))
    func `A slow name server is asked once for all reactors`() throws {
        let names = try Names(known: false, after: 1.8)
        let server = try RecordingServer(identity: TestAuthority.shared().otherName)
        let campaign = try Campaign(rows: 300)
        let process = try names.start(
            campaign.arguments(
                to: "\(Names.name):\(server.port)",
                ["--reactors", "3", "--connections", "3", "--log", "text"]))
        let sent = try process.wait(limit: Self.limit)
        #expect(sent.exitCode == 0, "\(sent.errors)")
        #expect(names.questions == 2)
        // One after the other they would take more than five seconds, and be reported after five.
        #expect(!sent.errors.contains("no name server has"), "\(sent.errors)")
        #expect(try campaign.statistics().accepted == 300)
    }

    @Test(
        .enabled(if: isAllowed),
        arguments: ["SIGINT", "SIGINT twice", "SIGTERM", "--deadline"])
    func `Signals and the deadline end a run that has no address yet`(what: String) throws {
        let names = try Names(known: false)
        let campaign = try Campaign(rows: 20)
        let process = try names.start(
            campaign.arguments(
                to: "\(Names.name):2197", what == "--deadline" ? ["--deadline", "2s"] : []))
        try process.wait { names.isAsked }
        try expectEnd(of: process, by: what, campaign)
    }

    @Test(.enabled(if: isAllowed), arguments: ["SIGINT", "SIGINT twice", "SIGTERM", "--deadline"])
    func `Signals and the deadline end a run whose name is no longer resolved`(what: String) throws
    {
        let names = try Names(known: true)
        let server = try RecordingServer(identity: TestAuthority.shared().otherName)
        let campaign = try Campaign(rows: 20_000)
        let process = try names.start(
            campaign.arguments(
                to: "\(Names.name):\(server.port)",
                ["--rate", "200"] + (what == "--deadline" ? ["--deadline", "6s"] : [])))
        try process.wait { (try? campaign.statistics().accepted) ?? 0 > 0 }
        try names.forget()
        server.stop()
        try process.wait { names.isAsked }
        try expectEnd(of: process, by: what, campaign)
    }

    private func expectEnd(
        of process: Subprocess, by what: String, _ campaign: Campaign
    ) throws {
        switch what {
        case "SIGTERM": process.send(signal: SIGTERM)
        case "SIGINT": process.send(signal: SIGINT)
        case "SIGINT twice":
            process.send(signal: SIGINT)
            usleep(1_000_000)
            process.send(signal: SIGINT)
        default: break
        }
        let ended = try process.wait(limit: Self.limit)
        #expect(ended.exitCode == 3, "\(ended.errors)")
        let says = what == "--deadline" ? "the deadline has passed" : "stopped by a signal"
        #expect(ended.errors.contains(says), "\(ended.errors)")
        #expect(try campaign.ledger("verify").exitCode == 0)
    }
}
