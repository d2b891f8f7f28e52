import Foundation

/// Debian's tinyproxy: an HTTP proxy that nobody here wrote.
package final class Tinyproxy {
    package let port: Int
    private let process: Subprocess
    private let directory: TemporaryDirectory

    /// - Parameters:
    ///   - login: `user password` that it demands; nil: it lets everybody through.
    ///   - connectPort: The only port that tunnels may lead to; nil: any.
    package init(login: String? = nil, connectPort: Int? = nil) throws {
        directory = try TemporaryDirectory()
        port = try Ports.free()
        var lines = [
            "Port \(port)", "Listen 127.0.0.1", "Timeout 120", "MaxClients 100",
            "LogLevel Connect", "LogFile \"\(directory.path)/log\"",
        ]
        if let login { lines.append("BasicAuth \(login)") }
        if let connectPort { lines.append("ConnectPort \(connectPort)") }
        let file = try directory.write(lines.joined(separator: "\n") + "\n", to: "tinyproxy.conf")
        process = try Subprocess(
            "timeout", ["300", Tool.path(of: "tinyproxy"), "-d", "-c", file], in: directory)
        try Ports.wait(for: port, at: "127.0.0.1", of: process)
    }

    deinit {
        process.stop()
    }

    package var url: String { "http://127.0.0.1:\(port)" }

    /// The tunnels that it was asked for, as it logged them.
    package func tunnels() throws -> Int {
        // A thread that waits for a core may have a request that is not logged yet.
        for _ in 0..<3000 {
            if process.isAsleep { break }
            usleep(20_000)
        }
        let log = try String(contentsOfFile: "\(directory.path)/log", encoding: .utf8)
        return log.split(separator: "\n").count { $0.contains("): CONNECT ") }
    }
}
