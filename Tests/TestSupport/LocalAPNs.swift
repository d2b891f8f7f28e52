import Foundation

/// `broadside simulate` with the credentials that all tests share: the key of `Campaign`, and any
/// certificate of `TestAuthority`.
package final class LocalAPNs {
    package let port: Int
    private let process: Subprocess
    private let directory: TemporaryDirectory
    private let journal: String

    /// - Parameter clock: How far its clock is off, in libfaketime's words: `+2h`.
    package init(
        _ more: [String] = [], address: String = "127.0.0.1", clock: String? = nil
    ) throws {
        let authority = try TestAuthority.shared()
        directory = try TemporaryDirectory()
        for (file, name) in [
            (authority.caFile, "ca.pem"), (authority.localhost.certificate, "server.pem"),
            (authority.localhost.key, "server.key"),
            (authority.authPublicKey, "AuthKey_\(Campaign.keyID).pub.pem"),
        ] {
            try FileManager.default.copyItem(atPath: file, toPath: "\(directory.path)/\(name)")
        }
        try directory.write(
            """
            {"key_id":"\(Campaign.keyID)","team_id":"\(Campaign.teamID)",
             "topic":"\(Campaign.topic)","other_topic":"com.example.other"}
            """, to: "config.json")
        journal = "\(directory.path)/journal"
        port = try Ports.free()
        let host = address.contains(":") ? "[\(address)]" : address
        process = try Broadside.start(
            [
                "simulate", "--listen", "\(host):\(port)", "--state", directory.path,
                "--journal", journal,
            ] + more, in: directory, environment: clock.map { try FakeTime.fixed($0) } ?? [:])
        try Ports.wait(for: port, at: address, of: process)
    }

    deinit {
        process.stop()
    }

    /// Memory in use now, bytes.
    package func residentBytes() throws -> Int {
        let fields = try String(
            contentsOfFile: "/proc/\(process.identifier)/statm", encoding: .utf8
        ).split(separator: " ")
        guard fields.count > 1, let pages = Int(fields[1]) else {
            throw TestFailure("no memory is told of the simulator")
        }
        return pages * sysconf(Int32(_SC_PAGESIZE))
    }

    package var endpoint: String { "localhost:\(port)" }

    /// What it said at its end, on stderr.
    package func totals() throws -> String {
        try String(contentsOfFile: process.errorsPath, encoding: .utf8)
    }

    /// Ends it and returns the journal's lines: time, connection, stream, apns-id, token, status,
    /// reason.
    package func finish() throws -> [[String]] {
        // Its end comes once it has written the journal, however busy the machine is.
        process.send(signal: SIGTERM)
        _ = try process.wait(limit: 3600)
        // Bytes are split ten times faster than characters.
        return try [UInt8](Data(contentsOf: URL(filePath: journal)))
            .split(separator: UInt8(ascii: "\n")).dropFirst().map {
                $0.split(separator: UInt8(ascii: ","), omittingEmptySubsequences: false)
                    .map { String(decoding: $0, as: UTF8.self) }
            }
    }
}
