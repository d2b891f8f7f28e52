import Foundation

/// A server of the tests' own in Python that says `listening on PORT` and serves until it is stopped.
package final class PythonServer {
    package let port: Int
    private let process: Subprocess
    package let directory: TemporaryDirectory

    /// Starts `Tests/Servers/SCRIPT` with these options.
    package init(_ script: String, _ options: [String], in directory: TemporaryDirectory) throws {
        self.directory = directory
        process = try Self.start(script, options, in: directory)
        for _ in 0..<3000 {
            let output = FileManager.default.contents(atPath: process.outputPath) ?? Data()
            let line = String(decoding: output, as: UTF8.self)
            if line.hasPrefix("listening on "), line.hasSuffix("\n"),
                let port = Int(line.dropFirst(13).dropLast())
            {
                self.port = port
                return
            }
            guard process.isRunning else { break }
            usleep(10_000)
        }
        let errors = FileManager.default.contents(atPath: process.errorsPath) ?? Data()
        throw TestFailure("\(script) does not listen: \(String(decoding: errors, as: UTF8.self))")
    }

    deinit { stop() }

    /// Starts `Tests/Servers/SCRIPT` as a module, which Python compiles once and not at each start.
    ///
    /// - Parameter python: An interpreter with packages; nil: one that has the standard library alone, as it starts
    ///   faster.
    static func start(
        _ script: String, _ options: [String], in directory: TemporaryDirectory,
        python: String? = nil
    ) throws -> Subprocess {
        let interpreter = try python.map { [$0] } ?? [Tool.path(of: "python3"), "-S"]
        let module = String(script.dropLast(".py".count))
        return try Subprocess(
            "timeout", ["1200"] + interpreter + ["-m", module] + options, in: directory,
            environment: ["PYTHONPATH": "\(Tool.packageRoot)/Tests/Servers"])
    }

    /// What it has said so far.
    package var output: String {
        String(
            decoding: FileManager.default.contents(atPath: process.outputPath) ?? Data(),
            as: UTF8.self)
    }

    package func stop() { process.stop() }
}
