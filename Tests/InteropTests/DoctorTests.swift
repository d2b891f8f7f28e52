import BroadsideTestSupport
import Foundation
import Testing

/// What the doctor finds, against the simulator and against servers that are none.
@Suite(.timeLimit(.minutes(60)))
struct DoctorTests {
    private let directory: TemporaryDirectory
    private let authority: TestAuthority

    init() throws {
        directory = try TemporaryDirectory()
        authority = try TestAuthority.shared()
    }

    private struct Report: Decodable {
        struct Check: Decodable {
            var name: String
            var state: String
            var detail: String
            var advice: String?
        }
        var endpoint: String
        var outcome: String
        var checks: [Check]

        /// The one check that failed.
        var failed: Check? {
            let failed = checks.filter { $0.state == "failed" }
            return failed.count == 1 ? failed[0] : nil
        }
    }

    private func doctor(
        _ endpoint: String, _ changes: [String: String] = [:], without: Set<String> = []
    ) throws -> (finished: Finished, report: Report?) {
        var options = [
            "endpoint": endpoint, "ca-file": authority.caFile, "topic": Campaign.topic,
            "auth-key": authority.authKey, "key-id": Campaign.keyID, "team-id": Campaign.teamID,
        ].filter { !without.contains($0.key) }
        options.merge(changes) { $1 }
        let arguments = ["doctor", "--json"] + options.flatMap { ["--\($0.key)", $0.value] }
        let finished = try Broadside.run(arguments, in: directory, limit: 120)
        return (finished, try? JSONDecoder().decode(Report.self, from: Data(finished.output.utf8)))
    }

    @Test
    func `doctor passes with key and certificate over IPv4 and IPv6 and notifies no device`() throws
    {
        for address in ["127.0.0.1", "::1"] {
            let server = try LocalAPNs(address: address)
            let host = address == "::1" ? "[::1]:\(server.port)" : server.endpoint
            let byKey = try doctor(host)
            #expect(byKey.finished.exitCode == 0, "\(byKey.finished.output)")
            #expect(byKey.report?.outcome == "ok")
            let names = byKey.report?.checks.map(\.name) ?? []
            for name in [
                "io_uring", "threads", "memory", "open files", "memory lock", "encryption", "name",
                "connect", "TLS", "ALPN", "SETTINGS", "credential", "topic",
            ] {
                #expect(names.contains(name))
            }
            let identity = try authority.clientCertificate(in: directory)
            let byCertificate = try doctor(
                host, ["certificate": identity.certificate, "private-key": identity.key],
                without: ["auth-key", "key-id", "team-id", "topic"])
            #expect(byCertificate.finished.exitCode == 0, "\(byCertificate.finished.output)")
            let journal = try server.finish()
            #expect(journal.count == 2)
            #expect(journal.allSatisfy { $0[6] == "BadDeviceToken" })
        }
    }

    @Test func `doctor distinguishes a wrong credential, topic and clock`() throws {
        let server = try LocalAPNs()
        func expect(
            _ name: String, says word: String, _ changes: [String: String],
            without: Set<String> = []
        ) throws {
            let (finished, report) = try doctor(server.endpoint, changes, without: without)
            #expect(finished.exitCode == 4, "\(finished.output)\(finished.errors)")
            let failed = try #require(report?.failed, "\(finished.output)")
            #expect(failed.name == name, "\(finished.output)")
            #expect(failed.advice?.contains(word) == true, "\(finished.output)")
        }
        let other = "\(directory.path)/other.p8"
        try Subprocess.run(
            "openssl",
            ["genpkey", "-algorithm", "EC", "-pkeyopt", "ec_paramgen_curve:P-256", "-out", other],
            in: directory)
        try expect("credential", says: "the file is key", ["auth-key": other])
        try expect("credential", says: "ABC123DEFX", ["key-id": "ABC123DEFX"])
        try expect("credential", says: "belongs to team DEF123GHIX", ["team-id": "DEF123GHIX"])
        try expect("credential", says: "IDs swapped?", ["team-id": "DEF123GHIX"])
        try expect("topic", says: "'com.example.stranger'", ["topic": "com.example.stranger"])
        let old = try authority.providerToken(
            issuedAt: Int(Date().timeIntervalSince1970) - 7200, in: directory)
        let file = try directory.write(old, to: "token")
        try expect(
            "clock", says: "older than an hour: put a new one into", ["auth-token-file": file],
            without: ["auth-key", "key-id", "team-id"])
        try expect(
            "clock", says: "older than an hour: have the command print a new one",
            ["auth-token-command": "cat '\(file)'"], without: ["auth-key", "key-id", "team-id"])
    }

    @Test func `doctor names what prevents a connection to APNs`() throws {
        func expect(
            _ name: String, says word: String, _ endpoint: String, _ changes: [String: String] = [:]
        ) throws {
            let (finished, report) = try doctor(endpoint, changes)
            #expect(finished.exitCode == 1, "\(finished.output)\(finished.errors)")
            let failed = try #require(report?.failed, "\(finished.output)")
            #expect(failed.name == name, "\(finished.output)")
            #expect(failed.detail.contains(word), "\(finished.output)")
        }
        let server = try LocalAPNs()
        let (expired, otherName) = (try authority.expired, try authority.otherName)
        try expect("TLS", says: "not trusted", server.endpoint, ["ca-file": authority.otherCAFile])
        try expect("connect", says: "refused", "localhost:\(Ports.free())")
        // No name has a label of more than 63 bytes, so that no name server is asked.
        let nowhere = String(repeating: "x", count: 64) + ".invalid"
        try expect("name", says: nowhere, "\(nowhere):443")
        for (name, word, more) in [
            (
                "TLS", "expired",
                ["-cert", expired.certificate, "-key", expired.key]
            ),
            (
                "TLS", "push.example",
                ["-cert", otherName.certificate, "-key", otherName.key]
            ),
            (
                "ALPN", "HTTP/2",
                ["-cert", authority.localhost.certificate, "-key", authority.localhost.key]
            ),
        ] {
            let port = try Ports.free()
            let process = try Subprocess(
                "timeout",
                ["60", "openssl", "s_server", "-accept", "127.0.0.1:\(port)", "-quiet"] + more,
                in: directory)
            defer { process.stop() }
            try Ports.wait(for: port, at: "127.0.0.1", of: process)
            try expect(name, says: word, "localhost:\(port)")
        }
    }

    @Test
    func `doctor prints a table or --json without secrets, and the token on request`() throws {
        let server = try LocalAPNs()
        let options = [
            "--auth-key", authority.authKey, "--key-id", Campaign.keyID, "--team-id",
            Campaign.teamID,
        ]
        let table = try Broadside.run(
            [
                "doctor", "--endpoint", server.endpoint, "--ca-file", authority.caFile, "--topic",
                Campaign.topic,
            ] + options, in: directory)
        #expect(table.exitCode == 0)
        #expect(table.output.contains("credential   ok       accepted by APNs"), "\(table.output)")
        let key = try String(contentsOfFile: authority.authKey, encoding: .utf8).split(
            separator: "\n")
        #expect(!table.output.contains(key[1].prefix(30)))
        #expect(!table.output.contains("eyJ"))

        let printed = try Broadside.run(["doctor", "--print-token"] + options, in: directory)
        #expect(printed.exitCode == 0)
        #expect(printed.output.split(separator: ".").count == 3)
        let file = try directory.write(printed.output, to: "token")
        let used = try doctor(
            server.endpoint, ["auth-token-file": file], without: ["auth-key", "key-id", "team-id"])
        #expect(used.finished.exitCode == 0, "\(used.finished.output)")
        let none = try Broadside.run(["doctor", "--topic", "com.x"], in: directory)
        #expect(none.exitCode == 2)
    }

    @Test func `doctor tests the ledger's disk and leaves it as it was`() throws {
        let server = try LocalAPNs()
        let well = try doctor(server.endpoint, ["ledger": "\(directory.path)/tonight"])
        #expect(well.finished.exitCode == 0, "\(well.finished.output)")
        let disk = try #require(well.report?.checks.first { $0.name == "ledger disk" })
        #expect(disk.state != "failed")
        #expect(disk.detail.contains(/free in .+, a sync takes [0-9.]+ m?s$/), "\(disk.detail)")
        let left = try FileManager.default.contentsOfDirectory(atPath: directory.path)
        #expect(!left.contains { $0.hasPrefix(".broadside") || $0.hasPrefix("tonight") }, "\(left)")
        let file = try directory.write("x", to: "file")
        let link = "\(directory.path)/link"
        try FileManager.default.createSymbolicLink(
            atPath: link, withDestinationPath: "\(directory.path)/absent")
        for place in [
            file, link, "/proc/tonight", "\(directory.path)/absent/tonight", "/dev/full/tonight",
        ] {
            let ill = try doctor(server.endpoint, ["ledger": place])
            #expect(ill.finished.exitCode == 1, "\(ill.finished.output)")
            #expect(ill.report?.failed?.name == "ledger disk", "\(place)")
        }
        let without = try doctor(server.endpoint).report
        #expect(without?.checks.contains { $0.name == "ledger disk" } == false)
    }

    @Test func `doctor reports missing io_uring and too few file descriptors`() throws {
        let server = try LocalAPNs()
        let arguments = [
            try Broadside.path(), "doctor", "--json", "--endpoint", server.endpoint, "--ca-file",
            authority.caFile, "--topic", Campaign.topic, "--auth-key", authority.authKey,
            "--key-id",
            Campaign.keyID, "--team-id", Campaign.teamID,
        ]
        let few = try Subprocess.run(
            "sh", ["-c", "ulimit -n 40; exec \"$@\"", "sh"] + arguments, in: directory, limit: 60)
        let report = try JSONDecoder().decode(Report.self, from: Data(few.output.utf8))
        let files = try #require(report.checks.first { $0.name == "open files" })
        #expect(files.state == "warning" && files.advice?.contains("ulimit -n") == true)
        #expect(files.detail.hasPrefix("40 allowed"), "\(files.detail)")
    }
}
