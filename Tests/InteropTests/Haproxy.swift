import BroadsideTestSupport
import Foundation

/// haproxy: HTTP/2 with TLS in front of `Tests/Servers/hang_up.py`, which it asks by HTTP/1.1, each
/// request over a connection of its own, and never twice.
final class Haproxy {
    private let process: Subprocess
    private let backend: PythonServer
    private let directory: TemporaryDirectory
    private let port: Int
    private let record: String

    /// - Parameters:
    ///   - way: How the backend hangs up, one of the script's functions with dashes.
    ///   - every: Of so many rows one meets that.
    init(way: String, every: Int = 10) throws {
        let identity = try TestAuthority.shared().localhost
        directory = try TemporaryDirectory()
        record = "\(directory.path)/record"
        backend = try PythonServer(
            "hang_up.py", ["--record", record, "--way", way, "--every", "\(every)"], in: directory)
        port = try Ports.free()
        let both = try [identity.certificate, identity.key].map {
            try String(contentsOfFile: $0, encoding: .utf8)
        }
        let certificate = try directory.write(both.joined(separator: "\n"), to: "haproxy.pem")
        // Silence is waited for. Otherwise, a long wait only means that the machine is busy.
        let patience = way == "silent" ? "5s" : "60s"
        let configuration = """
            defaults
              mode http
              timeout client 60s
              timeout connect 60s
              timeout server \(patience)
              retries 0
              http-reuse never
            frontend apns
              bind 127.0.0.1:\(port) ssl crt \(certificate) alpn h2
              default_backend provider
            backend provider
              server one 127.0.0.1:\(backend.port)

            """
        let file = try directory.write(configuration, to: "haproxy.cfg")
        process = try Subprocess(
            "timeout", ["300", Tool.path(of: "haproxy"), "-db", "-f", file], in: directory)
        try Ports.wait(for: port, at: "127.0.0.1", of: process)
    }

    deinit {
        process.stop()
    }

    var endpoint: String { "localhost:\(port)" }

    /// How often the backend got each token.
    func tally(_ tokens: DeviceTokens) throws -> Tally {
        try tokens.tally(log: record, mark: "/3/device/")
    }

    /// Requests that the backend has got so far.
    func requestCount() -> Int {
        let text = FileManager.default.contents(atPath: record) ?? Data()
        return text.count { $0 == 0x0a }
    }

    /// Closes the backend's port, or opens it again.
    func setListening(_ isListening: Bool) throws {
        if isListening {
            try FileManager.default.removeItem(atPath: record + ".closed")
            try FileManager.default.removeItem(atPath: record + ".down")
            return
        }
        try Data().write(to: URL(filePath: record + ".down"))
        while access(record + ".closed", F_OK) != 0 { usleep(5000) }
    }
}
