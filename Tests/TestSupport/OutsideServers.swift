import Foundation

/// nghttp2's own server; its verbose log names every header of every request.
package final class Nghttpd {
    package let port: Int
    private let process: Subprocess
    private let directory: TemporaryDirectory
    package static let mark = "/3/device/"

    /// - Parameter tokens: It has a file for each of these paths and accepts no others. nil: it accepts every path,
    ///   but slowly: it writes the body of each request to a file and sends it back.
    package init(
        address: String = "127.0.0.1", _ more: [String] = [], for tokens: DeviceTokens? = nil,
        isVerbose: Bool = true
    ) throws {
        let identity = try TestAuthority.shared().localhost
        directory = try TemporaryDirectory()
        port = try Ports.free()
        if let tokens {
            let folder = "\(directory.path)\(Self.mark)"
            try FileManager.default.createDirectory(
                atPath: folder, withIntermediateDirectories: true)
            for index in 0..<tokens.count {
                guard
                    FileManager.default.createFile(
                        atPath: folder + tokens.token(index), contents: nil)
                else { throw TestFailure("no file can be made in \(folder)") }
            }
        }
        // `timeout` ends it should the tests themselves be killed.
        process = try Subprocess(
            "timeout",
            [
                "300", Tool.path(of: "nghttpd"), "--htdocs=\(directory.path)",
                "--address=\(address)",
            ] + (tokens == nil ? ["--echo-upload"] : []) + (isVerbose ? ["--verbose"] : []) + more
                + [
                    "\(port)", identity.key, identity.certificate,
                ],
            in: directory)
        try Ports.wait(for: port, at: address, of: process)
    }

    deinit {
        process.stop()
    }

    /// Where its log goes.
    package var log: String { process.outputPath }

    package var isAsleep: Bool { process.isAsleep }

    /// What it saw, once it has nothing more to say.
    package func tally(_ tokens: DeviceTokens) throws -> Tally {
        try tokens.tally(log: log, mark: Self.mark)
    }

    package var endpoint: String { "localhost:\(port)" }
}

/// A server that writes down each request it gets.
package protocol LoggingServer: AnyObject {
    /// Where a client finds it.
    var endpoint: String { get }
    /// Where its log goes.
    var log: String { get }
    /// How often it got each token.
    func tally(_ tokens: DeviceTokens) throws -> Tally
    /// Whether it waits for something to come.
    var isAsleep: Bool { get }
}

extension LoggingServer {
    /// Bytes of the log so far.
    package var logCount: Int {
        var information = stat()
        return stat(log, &information) == 0 ? Int(information.st_size) : 0
    }

    /// Waits until the log has not grown for 300 ms, and the server has nothing to do: requests on their way have
    /// arrived.
    package func settle() {
        var last = -1
        for _ in 0..<200 {
            let isAsleep = self.isAsleep
            let count = logCount
            if isAsleep, count == last { return }
            last = count
            usleep(300_000)
        }
    }
}

extension Nghttpd: LoggingServer {}
extension Nginx: LoggingServer {}
extension H2O: LoggingServer {}

/// h2o, which keeps its header table of 4,096 bytes whatever a client's SETTINGS say.
package final class H2O {
    package let port: Int
    private let process: Subprocess
    private let directory: TemporaryDirectory

    package init() throws {
        let identity = try TestAuthority.shared().localhost
        directory = try TemporaryDirectory()
        port = try Ports.free()
        let path = directory.path
        let configuration = """
            pid-file: \(path)/h2o.pid
            error-log: \(path)/error.log
            num-threads: 1
            \(geteuid() == 0 ? "user: root" : "")
            listen:
              host: 127.0.0.1
              port: \(port)
              ssl:
                certificate-file: \(identity.certificate)
                key-file: \(identity.key)
                ocsp-update-interval: 0
            hosts:
              default:
                paths:
                  /3/device:
                    mruby.handler: |
                      Proc.new do |env|
                        [200, {"apns-id" => env["HTTP_APNS_ID"].to_s}, []]
                      end
                access-log:
                  path: \(path)/access.log
                  format: "%U %s"
            """
        let file = try directory.write(configuration, to: "h2o.conf")
        process = try Subprocess(
            "timeout", ["300", Tool.path(of: "h2o"), "-c", file], in: directory)
        try Ports.wait(for: port, at: "127.0.0.1", of: process)
    }

    deinit {
        process.stop()
    }

    package var endpoint: String { "localhost:\(port)" }

    /// Where its access log goes, a line a request.
    package var log: String { "\(directory.path)/access.log" }

    package var isAsleep: Bool { process.isAsleep }

    package func tally(_ tokens: DeviceTokens) throws -> Tally {
        // A line is written when the response is out.
        settle()
        return try tokens.tally(log: log, mark: "/3/device/")
    }
}

/// nginx, which ends each connection after 100 requests with GOAWAY.
package final class Nginx {
    package let port: Int
    private let process: Subprocess
    private let directory: TemporaryDirectory

    /// - Parameter asksForCertificates: Clients are asked for a certificate, and `clients.log` names
    ///   the subject of each request's.
    package init(
        protocols: String = "TLSv1.2 TLSv1.3", requestsPerConnection: Int = 100,
        asksForCertificates: Bool = false
    ) throws {
        let identity = try TestAuthority.shared().localhost
        directory = try TemporaryDirectory()
        port = try Ports.free()
        let path = directory.path
        let configuration = """
            daemon off; master_process off; pid \(path)/nginx.pid; error_log \(path)/error.log;
            events { worker_connections 1024; }
            http {
              log_format paths '$ssl_protocol $request_uri $status';
              log_format clients '$ssl_client_s_dn';
              access_log \(path)/access.log paths;
              client_body_temp_path \(path)/body; proxy_temp_path \(path)/proxy;
              fastcgi_temp_path \(path)/fastcgi; uwsgi_temp_path \(path)/uwsgi;
              scgi_temp_path \(path)/scgi;
              server {
                listen 127.0.0.1:\(port) ssl http2; server_name localhost;
                ssl_certificate \(identity.certificate); ssl_certificate_key \(identity.key);
                ssl_protocols \(protocols);
                keepalive_requests \(requestsPerConnection);
                \(asksForCertificates ? Self.clientOptions(path) : "")
                location /3/device/ { return 200; }
              }
            }
            """
        let file = try directory.write(configuration, to: "nginx.conf")
        process = try Subprocess(
            "timeout", ["300", Tool.path(of: "nginx"), "-p", path, "-c", file, "-e", "stderr"],
            in: directory)
        try Ports.wait(for: port, at: "127.0.0.1", of: process)
    }

    deinit {
        process.stop()
    }

    private static func clientOptions(_ path: String) -> String {
        "ssl_verify_client optional_no_ca; access_log \(path)/access.log paths; "
            + "access_log \(path)/clients.log clients;"
    }

    /// The subject of the client certificate of each request.
    package func clients() throws -> [String] {
        settle()
        return try String(contentsOfFile: "\(directory.path)/clients.log", encoding: .utf8)
            .split(separator: "\n").map(String.init)
    }

    package var endpoint: String { "localhost:\(port)" }

    /// Where its access log goes, a line a request.
    package var log: String { "\(directory.path)/access.log" }

    package var isAsleep: Bool { process.isAsleep }

    package func tally(_ tokens: DeviceTokens) throws -> Tally {
        try tokens.tally(log: log, mark: "/3/device/")
    }

    /// Requests with a status, as the access log has them.
    package func tally(
        _ tokens: DeviceTokens, tls: String, status: Int = 200
    ) throws -> (tally: Tally, lines: Int) {
        // nginx writes a line when a request is over, which may be a moment after its answer.
        settle()
        let log = try Data(contentsOf: URL(filePath: log))
        let lines = log.split(separator: 0x0a)
        var wanted = Data()
        for line in lines
        where line.starts(with: tls.utf8) && line.suffix(4) == Data(" \(status)".utf8) {
            wanted += line + [0x0a]
        }
        return (tokens.tally(log: wanted, mark: "/3/device/"), lines.count)
    }
}
