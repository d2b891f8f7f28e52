import BroadsideTestSupport
import Foundation
import Testing

/// Values that hold line ends, escape sequences and controls that change the order of a text: whatever
/// is said of them is said in one line that a terminal shows as it is.
@Suite(.serialized, .timeLimit(.minutes(60)))
struct OddValueTests {
    /// A line feed, a carriage return, an escape sequence, C1's own one and its line end, both
    /// separators, and an override of the direction.
    static let odd = "x\n\r\u{1b}[31m\u{9b}1m\u{85}\u{2028}\u{2029}\u{202e}y"

    /// A command that is well-formed but for one option.
    struct Call: Sendable, CustomTestStringConvertible {
        var command: [String]
        var arguments: [String] = []
        /// Options that would make a server of it, or a pipe wait.
        var without: Set<String> = []

        var testDescription: String { command.joined(separator: " ") }
    }

    static let calls: [Call] = [
        .init(command: ["send"]), .init(command: ["probe"]),
        .init(
            command: ["prune"],
            arguments: ["--ledger", "@strange", "--tokens", "@list", "--output", "x"]),
        .init(
            command: ["tokens", "check"], arguments: ["--tokens", "@list"]),
        .init(
            command: ["tokens", "dedupe"],
            arguments: ["--tokens", "@list", "--output", "@directory"], without: ["output"]),
        .init(command: ["payload", "check"], arguments: ["--payload", "@fits"]),
        .init(command: ["ledger", "stats"], arguments: ["--ledger", "@strange"]),
        .init(command: ["ledger", "export"], arguments: ["--ledger", "@strange"]),
        .init(command: ["ledger", "find"], arguments: ["--ledger", "@strange"]),
        .init(command: ["ledger", "verify"], arguments: ["--ledger", "@strange"]),
        .init(
            command: ["ledger", "merge"], arguments: ["@strange", "--output", "@directory"]),
        .init(command: ["report"], arguments: ["--ledger", "@strange"]),
        .init(
            command: ["doctor"],
            arguments: ["--endpoint", "127.0.0.1:1", "--topic", "com.example.app"]),
        .init(
            command: ["simulate"], arguments: ["--state", "@directory", "--listen", "here"],
            without: ["state", "journal", "deliveries", "control", "offline"]),
        .init(command: ["bench"]), .init(command: ["feedback"]),
    ]

    @Test func `An argument that is not valid UTF-8 is refused, and no other file is read`() throws
    {
        let directory = try TemporaryDirectory()
        try directory.write(DeviceTokens(count: 3).list(), to: "list\u{fffd}.txt")
        let script = "cd \"$1\" && exec \"$0\" tokens check --tokens $'list\\xff.txt'"
        let refused = try Subprocess(
            "bash", ["-c", script, Broadside.path(), directory.path], in: directory
        ).wait(limit: 60)
        #expect(refused.exitCode == 2 && refused.output.isEmpty)
        #expect(
            refused.errors == "broadside: 'list\u{fffd}.txt' is not valid UTF-8: rename the file, "
                + "or write the text in UTF-8\n", "\(refused.errors)")
    }

    @Test(arguments: calls)
    func `Control characters in an option's value are escaped in each command's messages`(
        _ call: Call
    ) throws {
        let files = try Files.shared()
        let help = try Broadside.run([call.command[0], "--help"], in: files.scratch).output
        // A value's name follows the option after one blank, the help of a flag after several.
        let names = help.matches(of: /(?m)^  --([a-z-]+) \S/).map { String($0.1) }
        #expect(!names.isEmpty || call.command == ["ledger"])
        for name in names where !call.without.contains(name) {
            var arguments = call.command + base(call, without: name, files)
            arguments += ["--\(name)", Self.odd]
            try expectPlain(arguments, files)
        }
    }

    private func base(_ call: Call, without name: String, _ files: Files) -> [String] {
        var all = call.arguments.map(files.expand)
        if call.command == ["send"] || call.command == ["probe"] {
            all = Array(files.campaign.arguments(to: "127.0.0.1:1", ["--dry-run"]).dropFirst())
            if call.command == ["probe"], let place = all.firstIndex(of: "--payload") {
                all.removeSubrange(place...(place + 1))
            }
            if name == "to", let place = all.firstIndex(of: "--tokens") {
                all.removeSubrange(place...(place + 1))
            }
        }
        if let place = all.firstIndex(of: "--\(name)") { all.removeSubrange(place...(place + 1)) }
        return all
    }

    @Test(arguments: [
        [odd], ["help", odd], ["send", odd], ["send", "--" + odd], ["send", "-" + odd],
        ["ledger", odd], ["ledger", "stats", odd], ["tokens", odd], ["payload", "check", odd],
        ["control", odd, "status"], ["control", "/nowhere", odd], ["send", "--resume=" + odd],
        ["prune", "--reasons", odd, "--ledger", "x", "--tokens", "x", "--output", "y"],
    ])
    func `Control characters in words and names of options are escaped in messages`(
        _ arguments: [String]
    ) throws { try expectPlain(arguments, Files.shared()) }

    @Test func `Control characters in files are escaped in messages`() throws {
        let files = try Files.shared()
        let directory = try TemporaryDirectory()
        let escaped = #"x\n\r\u001b[31m\u009b1m\u0085\u2028\u2029\u202ey"#
        let payload = try directory.write(
            #"{"aps":{"\#(escaped)":1,"alerts":"x","alert":{"\#(escaped)":1}}}"#, to: "p")
        let template = try directory.write(#"{"aps":{"alert":"{{\#(escaped)}}"}}"#, to: "t")
        let typed = try directory.write(#"{"aps":{"alert":"{{n:\#(escaped)}}"}}"#, to: "typed")
        let fallback = try directory.write(
            #"{"aps":{"badge":"{{n:int|\#(escaped)}}"}}"#, to: "fallback")
        let campaign = try directory.write(#"{"\#(escaped)":1}"#, to: "c")
        let table = try directory.write("\"\(Self.odd)\",b\n1,2\n", to: "table.csv")
        let odd = try directory.write("token\n", to: "od\u{1b}[31m\u{202e}d")
        for file in [payload, template, typed, fallback] {
            try expectPlain(["payload", "check", "--payload", file], files)
            try expectPlain(
                files.campaign.arguments(to: "127.0.0.1:1", ["--payload", file, "--dry-run"]),
                files)
        }
        for more in [
            ["--campaign", campaign], ["--tokens", table], ["--tokens", table, "--format", "tsv"],
            ["--tokens", odd], ["--payload", odd], ["--auth-key", odd], ["--suppress", table],
        ] {
            try expectPlain(
                files.campaign.arguments(to: "127.0.0.1:1", more + ["--dry-run"]), files)
        }
        try expectPlain(["tokens", "check", "--tokens", table], files)
        try expectPlain(["tokens", "check", "--tokens", table, "--token-column", "b"], files)
    }

    private func expectPlain(_ arguments: [String], _ files: Files) throws {
        let finished = try Broadside.run(arguments, in: files.scratch, limit: 60)
        let text = finished.errors + finished.output
        let invisible = text.unicodeScalars.filter { scalar in
            let isSeparator =
                [.control, .lineSeparator, .paragraphSeparator]
                .contains(scalar.properties.generalCategory)
            return scalar != "\n" && (isSeparator || scalar.properties.isBidiControl)
        }
        #expect(invisible.isEmpty, "\(arguments): \(text.debugDescription)")
        // Warnings are lines too, and doctor's findings are its output.
        let lines = finished.errors.split(separator: "\n")
        #expect(
            lines.allSatisfy { $0.hasPrefix("broadside: ") },
            "\(arguments): \(finished.errors.debugDescription)")
        #expect(finished.exitCode >= 0 && finished.errorLines.count <= 1, "\(finished.errors)")
        #expect(finished.exitCode != 2 || finished.errorLines.count == 1, "\(arguments)")
    }
}
