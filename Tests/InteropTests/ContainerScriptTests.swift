import BroadsideTestSupport
import Foundation
import Testing

/// The scripts in `contrib` that show a local APNs in a container, run without containers: with the
/// options that they give to `simulate`, and other ports and paths.
@Suite(.timeLimit(.minutes(10)))
struct ContainerScriptTests {
    private let directory: TemporaryDirectory
    private let port: Int

    init() throws {
        directory = try TemporaryDirectory()
        port = try Ports.free()
    }

    private func contents(_ file: String) throws -> String {
        try String(contentsOfFile: "\(Tool.packageRoot)/contrib/\(file)", encoding: .utf8)
    }

    /// The simulator with options of `contrib`, and control on a free port.
    private func simulation(_ options: [String]) throws -> Simulation {
        #expect(options.suffix(2) == ["--control-listen", "0.0.0.0:2198"])
        return try Simulation(options.dropLast() + ["127.0.0.1:\(port)"])
    }

    /// The first block of lines that is indented deeper than its beginning, a line that ends with `|`,
    /// behind a certain line.
    private func block(of text: String, behind heading: String) throws -> String {
        let lines = text.split(separator: "\n", omittingEmptySubsequences: false)
        let start = try #require(
            lines.firstIndex { $0.trimmingCharacters(in: .whitespaces) == heading })
        let first = try #require(lines[start...].firstIndex { $0.hasSuffix("|") }) + 1
        let indentation = lines[first].prefix { $0 == " " }
        return lines[first...].prefix { $0.isEmpty || $0.hasPrefix(indentation) }
            .map { String($0.dropFirst(indentation.count)) }.joined(separator: "\n")
    }

    private func run(
        _ shell: String, _ script: String, _ environment: [String: String] = [:]
    ) throws -> Finished {
        let programs = "\(directory.path)/programs"
        try FileManager.default.createDirectory(
            atPath: programs, withIntermediateDirectories: true)
        try FileManager.default.createSymbolicLink(
            atPath: "\(programs)/broadside", withDestinationPath: Broadside.path())
        let path = ProcessInfo.processInfo.environment["PATH"] ?? "/usr/bin:/bin"
        return try Subprocess(
            shell, ["-ec", "cd \(directory.path)\n\(script)"], in: directory,
            environment: environment.merging(["PATH": "\(programs):\(path)"]) { $1 }
        ).wait()
    }

    @Test func `The compose file's tests send, and read over HTTP what was received`() throws {
        let text = try contents("docker/compose.yaml")
        let list = try #require(text.firstMatch(of: /command: (\[[^\]]*--issue-tokens[^\]]*\])/))
        let simulation = try simulation(
            try JSONDecoder().decode([String].self, from: Data(list.1.utf8)))
        let script = try block(of: text, behind: "tests:")
            .replacing("localhost:2197", with: simulation.endpoint)
            .replacing("localhost/2198", with: "localhost/\(port)")
            .replacing("/apns/", with: "\(simulation.state)/").replacing("$$", with: "$")
        let ended = try run("/bin/sh", script)
        #expect(ended.exitCode == 0, "\(ended.errors)")
        #expect(ended.output.contains(#"{"ok":true,"count":1001,"last":1001}"#), "\(ended.output)")
        let received = ended.output.split(separator: "\n").last ?? ""
        #expect(received.contains(#""reason":"TooManyRequests""#), "\(received)")
        try simulation.stop()
    }

    @Test func `The workflow's test pushes, and reads over HTTP what was received`() throws {
        let text = try contents("github-actions/apns.yml")
        let words = try #require(text.firstMatch(of: /broadside-simulate (--issue-tokens.*)/))
        let simulation = try simulation(words.1.split(separator: " ").map(String.init))
        let ended = try run(
            "bash", try block(of: text, behind: "- name: Test"),
            [
                "APNS_ADDRESS": simulation.endpoint, "APNS_STATE": simulation.state,
                "APNS_CONTROL": "http://127.0.0.1:\(port)",
            ])
        #expect(ended.exitCode == 0, "\(ended.errors)")
        #expect(ended.output.contains(#"{"ok":true,"count":1,"last":1}"#), "\(ended.output)")
        #expect(ended.output.contains(#"{"reason":"Unregistered","timestamp":"#))
        try simulation.stop()
    }
}
