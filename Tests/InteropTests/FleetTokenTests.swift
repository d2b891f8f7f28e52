import BroadsideTestSupport
import Foundation
import Testing

/// Provider tokens of processes that know nothing of each other: the same bytes.
@Suite(.timeLimit(.minutes(60)))
struct FleetTokenTests {
    private let directory: TemporaryDirectory
    private let authority: TestAuthority

    init() throws {
        directory = try TemporaryDirectory()
        authority = try TestAuthority.shared()
    }

    /// The token that a process uses by its clock and its libraries.
    private func token(_ environment: [String: String]) throws -> String {
        let printed = try Broadside.run(
            [
                "doctor", "--print-token", "--auth-key", authority.authKey, "--key-id",
                Campaign.keyID, "--team-id", Campaign.teamID,
            ], in: directory, environment: environment)
        #expect(printed.exitCode == 0, "\(printed.errors)")
        return printed.output
    }

    @Test
    func `Clocks four minutes apart make the same token except at a window's change`() throws {
        // Every two minutes of a window, and some of the next one; the change comes 5 minutes into one.
        var differing: [Int] = []
        var seen: [String] = []
        for second in stride(from: 30, to: 2430, by: 120) {
            let early = try token(FakeTime.inWindow(second))
            let late = try token(FakeTime.inWindow(second + 240))
            if early != late { differing.append(second) }
            if seen.last != early { seen.append(early) }
        }
        #expect(differing == [150, 270, 1950, 2070])
        #expect(seen.count == 3)
    }

    @Test func `Two campaigns with clocks four minutes apart send the same token`() throws {
        let server = try RecordingServer()
        for second in [600, 840] {
            let campaign = try Campaign(rows: 2)
            let sent = try campaign.send(
                to: server.endpoint, ["--connections", "1"],
                environment: FakeTime.inWindow(second))
            #expect(sent.exitCode == 0, "\(sent.errors)")
        }
        let values = try server.events().compactMap(\.fields)
            .compactMap { $0.first { $0.name == "authorization" }?.value }
        #expect(values.count == 4 && Set(values).count == 1, "\(values)")
    }

    @Test(.enabled(if: Self.otherLibraries != nil, "no other OpenSSL: run tools/install-clients"))
    func `OpenSSL 3.2 or later and GnuTLS make the same token`() throws {
        let (ssl, crypto) = try #require(Self.otherLibraries)
        for (name, path) in [("libssl.so.3", ssl), ("libcrypto.so.3", crypto)] {
            try FileManager.default.createSymbolicLink(
                atPath: "\(directory.path)/\(name)", withDestinationPath: path)
        }
        let clock = try FakeTime.inWindow(600)
        let other = clock.merging(["LD_LIBRARY_PATH": directory.path]) { $1 }
        #expect(try token(clock) == token(other))
        let campaign = try Campaign(rows: 1)
        let loaded = try Subprocess(
            "ldd", [Broadside.path()], in: directory,
            environment: ["LD_LIBRARY_PATH": directory.path]
        ).wait(limit: 60)
        #expect(loaded.output.contains("libcrypto.so.3 => \(directory.path)"), "\(loaded.output)")
        // And with it a whole run.
        let server = try RecordingServer()
        let sent = try campaign.send(to: server.endpoint, environment: other)
        #expect(sent.exitCode == 0, "\(sent.errors)")
    }

    /// The OpenSSL that comes with psycopg's wheel (3.5 or later), if tools/install-clients was run.
    private static let otherLibraries: (ssl: String, crypto: String)? = {
        let root = ".build/clients/openssl/lib"
        let files = FileManager.default.enumerator(atPath: root)?.compactMap { $0 as? String } ?? []
        func find(_ prefix: String) -> String? {
            files.first { ($0.split(separator: "/").last ?? "").hasPrefix(prefix) }
                .map { "\(FileManager.default.currentDirectoryPath)/\(root)/\($0)" }
        }
        guard let ssl = find("libssl-"), let crypto = find("libcrypto-") else { return nil }
        return (ssl, crypto)
    }()
}
