import BroadsideTestSupport
import Foundation
import Testing

/// What a running process shows of its secrets: in its memory, in a core dump, in process lists.
@Suite(.timeLimit(.minutes(60)))
struct MemorySecretsTests {
    private static let without: Set<String> = ["auth-key", "key-id", "team-id"]

    /// A campaign that takes its time.
    private func start(
        _ campaign: Campaign, _ options: [String], without: Set<String> = [],
        environment: [String: String] = [:], to server: LocalAPNs
    ) throws -> Subprocess {
        let arguments = campaign.arguments(
            to: server.endpoint, ["--rate", "100"] + options, without: without)
        // No backtrace in the way of the signal that makes a core dump.
        let sending = try Subprocess(
            "bash",
            [
                "-c", #"cd "$0" && ulimit -c unlimited && exec "$@""#, campaign.directory.path,
                Broadside.path(),
            ] + arguments, in: campaign.directory,
            environment: environment.merging(["SWIFT_BACKTRACE": "enable=no"]) { $1 })
        try sending.wait {
            let names = (try? campaign.directory.names(in: campaign.ledger)) ?? []
            return names.contains { name in
                let file = try? FileManager.default.attributesOfItem(
                    atPath: "\(campaign.ledger)/\(name)")
                return name.hasPrefix("segment") && (file?[.size] as? Int ?? 0) > 0
            }
        }
        return sending
    }

    /// A file of a process in `/proc`, to its end: Foundation stops at the first page.
    private func file(_ name: String, of process: Subprocess) throws -> Data {
        let descriptor = open("/proc/\(process.identifier)/\(name)", O_RDONLY | O_CLOEXEC)
        try #require(descriptor >= 0)
        defer { close(descriptor) }
        var all = Data()
        var page = [UInt8](repeating: 0, count: 1 << 16)
        while true {
            let count = read(descriptor, &page, page.count)
            try #require(count >= 0)
            if count == 0 { return all }
            all.append(contentsOf: page[..<count])
        }
    }

    /// All that a process has in memory that it can write to, with the stack of its first thread.
    private func memory(of process: Subprocess) throws -> Data {
        var all = Data()
        let maps = try String(decoding: file("maps", of: process), as: UTF8.self)
        try #require(maps.contains("[stack]"))
        let descriptor = open("/proc/\(process.identifier)/mem", O_RDONLY | O_CLOEXEC)
        try #require(descriptor >= 0)
        defer { close(descriptor) }
        for line in maps.split(separator: "\n") {
            let words = line.split(separator: " ")
            let ends = words[0].split(separator: "-").compactMap { UInt64($0, radix: 16) }
            guard words[1].hasPrefix("rw"), ends.count == 2 else { continue }
            var part = [UInt8](repeating: 0, count: Int(ends[1] - ends[0]))
            let count = pread(descriptor, &part, part.count, off_t(ends[0]))
            if count > 0 { all.append(contentsOf: part[..<count]) }
        }
        return all
    }

    /// Looks until none of them is found: what a connection is being made with is there for a moment.
    private func expectNone(
        of secrets: [String], in process: Subprocess, _ comment: Comment
    ) throws {
        var found = secrets
        for _ in 0..<50 where !found.isEmpty {
            let memory = try memory(of: process)
            // The search finds what is there.
            #expect(memory.range(of: Data("api.marked-topic".utf8)) != nil)
            found = secrets.filter { memory.range(of: Data($0.utf8)) != nil }
            if !found.isEmpty { Thread.sleep(forTimeInterval: 0.1) }
        }
        #expect(found.isEmpty, comment)
    }

    @Test(.enabled(if: geteuid() == 0, "only root may look into a process that keeps to itself"))
    func `No key from a variable or a command stays in memory, after a reload either`() throws {
        let server = try LocalAPNs()
        let campaigns = [try Campaign(rows: 30_000), try Campaign(rows: 30_000)]
        let key = try String(contentsOfFile: campaigns[0].authority.authKey, encoding: .utf8)
        let parts = key.split(separator: "\n").dropFirst().prefix(2).map { String($0.prefix(40)) }
        let mark = ["--collapse-id", "api.marked-topic"]
        let processes = [
            try start(
                campaigns[0], mark + ["--auth-key", "env:MARKED_KEY"],
                environment: ["MARKED_KEY": key.replacing("\n", with: "\\n")], to: server),
            try start(
                campaigns[1],
                mark + ["--auth-key-command", "cat '\(campaigns[1].authority.authKey)'"],
                without: ["auth-key"], to: server),
        ]
        for process in processes {
            process.send(signal: SIGHUP)
            try process.wait {
                try String(contentsOfFile: process.errorsPath, encoding: .utf8)
                    .contains("credentials were read again")
            }
            try expectNone(of: parts, in: process, "signing key")
            let environment = try file("environ", of: process)
            #expect(environment.range(of: Data("SWIFT_BACKTRACE=".utf8)) != nil)
            for part in parts { #expect(environment.range(of: Data(part.utf8)) == nil) }
            process.stop()
        }
    }

    @Test(.enabled(if: geteuid() == 0, "only root may look into a process that keeps to itself"))
    func `No key, passphrase or password stays in memory, after a reload either`() throws {
        let server = try LocalAPNs()
        let proxy = try Tinyproxy(login: "marked-user marked-word")
        let first = try Campaign(rows: 30_000)
        let login = try first.directory.write("marked-user:marked-word\n", to: "login")
        let key = try String(contentsOfFile: first.authority.authKey, encoding: .utf8)
            .split(separator: "\n").dropFirst().prefix(2).map { String($0.prefix(40)) }
        let byKey = try start(
            first,
            [
                "--proxy", proxy.url, "--proxy-auth-file", login, "--collapse-id",
                "api.marked-topic",
            ], to: server)

        let second = try Campaign(rows: 30_000)
        let directory = second.directory
        let identity = try second.authority.clientCertificate(in: directory)
        let bundle = try identity.bundle(passphrase: "marked-passphrase", in: directory)
        let word = try directory.write("marked-passphrase\n", to: "word")
        let byCertificate = try start(
            second,
            [
                "--certificate", bundle, "--passphrase-file", word, "--collapse-id",
                "api.marked-topic",
            ], without: Self.without, to: server)
        let certificateKey = try String(contentsOfFile: identity.key, encoding: .utf8)
            .split(separator: "\n").dropFirst().prefix(2).map { String($0.prefix(40)) }

        for process in [byKey, byCertificate] {
            process.send(signal: SIGHUP)
            try process.wait {
                try String(contentsOfFile: process.errorsPath, encoding: .utf8)
                    .contains("credentials were read again")
            }
        }
        #expect(key.count == 2 && certificateKey.count == 2)
        try expectNone(of: key + ["marked-word"], in: byKey, "signing key or password")
        try expectNone(
            of: certificateKey + ["marked-passphrase"], in: byCertificate, "key or passphrase")
        for process in [byKey, byCertificate] {
            for list in ["cmdline", "environ"] {
                let text = try file(list, of: process)
                for secret in key + certificateKey + ["marked-word", "marked-passphrase"] {
                    #expect(text.range(of: Data(secret.utf8)) == nil)
                }
            }
        }
    }

    /// Whether a process that aborts leaves a core dump here.
    private static let dumpsCore: Bool = {
        guard let directory = try? TemporaryDirectory(),
            let sleeper = try? Subprocess(
                "bash", ["-c", "cd \(directory.path) && ulimit -c unlimited && kill -ABRT $$"],
                in: directory), (try? sleeper.wait(limit: 20)) != nil
        else { return false }
        return cores(in: directory) > 0
    }()

    private static func cores(in directory: TemporaryDirectory) -> Int {
        ((try? directory.names(in: directory.path)) ?? []).count { $0.hasPrefix("core") }
    }

    @Test(.enabled(if: dumpsCore, "this machine writes no core dumps into the working directory"))
    func `A crash of a run leaves no core dump`() throws {
        let server = try LocalAPNs()
        let campaign = try Campaign(rows: 2000)
        let sending = try start(campaign, [], to: server)
        sending.send(signal: SIGABRT)
        #expect(try sending.wait(limit: 30).exitCode == -SIGABRT)
        #expect(Self.cores(in: campaign.directory) == 0)
    }
}
