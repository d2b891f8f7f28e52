import Foundation

/// `broadside simulate`, with the credentials that it made for itself.
package final class Simulation {
    /// Where a client finds it.
    package let endpoint: String
    private let process: Subprocess
    private let directory: TemporaryDirectory
    /// Of the line that talks to it.
    private let words: [String]

    /// - Parameter more: Options of `simulate`.
    package init(_ more: [String] = []) throws {
        directory = try TemporaryDirectory()
        let state = "\(directory.path)/state"
        process = try Subprocess(
            "timeout",
            ["300", Broadside.path(), "simulate", "--listen", "127.0.0.1:0", "--state", state]
                + more, in: directory)
        var announced: [String] = []
        for _ in 0..<6000 where announced.count < 3 {
            let output = FileManager.default.contents(atPath: process.outputPath) ?? Data()
            // The place, the line that talks to it, and what follows the last line's end.
            announced = String(decoding: output, as: UTF8.self)
                .split(separator: "\n", omittingEmptySubsequences: false).map(String.init)
            guard process.isRunning else {
                let errors = FileManager.default.contents(atPath: process.errorsPath) ?? Data()
                throw TestFailure("simulate ended: \(String(decoding: errors, as: UTF8.self))")
            }
            usleep(10_000)
        }
        guard announced.count >= 3, announced[0].hasPrefix("listening on ") else {
            throw TestFailure("simulate did not say its port within 60 s: \(announced)")
        }
        endpoint = String(announced[0].dropFirst(13))
        words = announced[1].split(separator: " ").map(String.init)
    }

    deinit {
        process.stop()
    }

    /// Its state directory.
    package var state: String { "\(directory.path)/state" }

    /// Ends it; what it said at its end.
    ///
    /// - Throws: Where it does not say by its exit code that all was well.
    @discardableResult
    package func stop() throws -> String {
        process.send(signal: SIGTERM)
        let finished = try process.wait()
        guard finished.exitCode == 0 else {
            throw TestFailure("simulate ended with \(finished.exitCode): \(finished.errors)")
        }
        return finished.errors
    }

    /// The options of `name` in the line that talks to it, each with its value.
    package func options(_ names: [String]) throws -> [String] {
        try names.flatMap { name in
            guard let at = words.firstIndex(of: "--" + name), at + 1 < words.count else {
                throw TestFailure("simulate does not say --\(name): \(words)")
            }
            return [words[at], words[at + 1]]
        }
    }

    /// Options that name its certificate, its signing key and its topic.
    package func credentials() throws -> [String] {
        try options(["ca-file", "auth-key", "key-id", "team-id", "topic"])
    }
}
