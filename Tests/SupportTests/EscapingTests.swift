import BroadsideSupport
import Foundation
import Testing

/// Texts for a shell, for JSON and for a log: what reads them is the judge.
@Suite struct EscapingTests {
    private static let pieces = [
        "a", "Z", "0", "'", "\"", "\\", "$HOME", "`id`", " ", "\n", "\t", "\r", ";", "&", "|", "*",
        "~", "#", "!", "é", "日", "😀", "\u{301}", "\u{200d}", "\u{202e}", "\u{9b}", "\u{1}",
        "\u{7f}",
        "-", "=", "<", ">", "%s", "{{", "/",
    ]

    private static func texts(_ count: Int) -> [String] {
        [""]
            + (0..<count).map { _ in
                (0..<Int.random(in: 1...8)).map { _ in pieces.randomElement()! }.joined()
            }
    }

    @Test func `A quoted word is read by the shell as it was`() throws {
        let texts = Self.texts(300)
        let process = Process()
        process.executableURL = URL(fileURLWithPath: "/bin/bash")
        // A word that is not quoted any more may write a file.
        let folder = FileManager.default.temporaryDirectory.appending(path: UUID().uuidString)
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        defer { try? FileManager.default.removeItem(at: folder) }
        process.currentDirectoryURL = folder
        process.arguments = ["-c", "printf '%s\\0' " + texts.map(shellWord).joined(separator: " ")]
        let output = Pipe()
        process.standardOutput = output
        try process.run()
        let bytes = try output.fileHandleForReading.readToEnd() ?? Data()
        process.waitUntilExit()
        #expect(process.terminationStatus == 0)
        let words = bytes.split(separator: 0, omittingEmptySubsequences: false).dropLast()
        #expect(words.map { Array($0) } == texts.map { Array($0.utf8) })
        // A message shows the word as it is.
        #expect(texts.map(shellWord).allSatisfy { ForeignText.escaped($0) == $0 })
        #expect(shellWord("nl\ndir/L") == "$'nl\\ndir/L'")
    }

    @Test func `A JSON string is read back, and has no control characters`() throws {
        for text in Self.texts(1_000) {
            var line = JSONLine()
            line.add("text", text)
            line.add(text + "key", UInt64(7))
            let object = try #require(
                JSONSerialization.jsonObject(with: Data(line.object.utf8)) as? [String: Any])
            let read = try #require(object["text"] as? String)
            #expect(Array(read.utf8) == Array(text.utf8))
            #expect(object.count == 2)
            #expect(
                !line.object.unicodeScalars.contains {
                    $0.value < 0x20 || (0x7f..<0xa0).contains($0.value) || $0 == "\u{202e}"
                })
        }
    }

    @Test func `A JSON number loses exactly the zeros without meaning`() {
        var line = JSONLine()
        line.add("a", 1.5, places: 3)
        line.add("b", 10.0, places: 2)
        line.add("c", 100.0, places: 0)
        line.add("d", nil, places: 2)
        line.add("e", true)
        #expect(line.object == #"{"a":1.5,"b":10,"c":100,"d":null,"e":true}"#)
        var outer = JSONLine()
        outer.append(JSONLine())
        outer.append(line)
        outer.add("f", JSONLine())
        #expect(outer.object == #"{"a":1.5,"b":10,"c":100,"d":null,"e":true,"f":{}}"#)
    }

    @Test func `An excerpt of a device token shows eight digits`() {
        for _ in 0..<500 {
            let digits = (0..<Int.random(in: 16...80)).map { _ in
                "0123456789abcdefABCDEF".randomElement()!
            }
            let around = (Self.pieces.randomElement()!, Self.pieces.randomElement()!)
            let excerpt = tokenExcerpt((around.0 + String(digits) + around.1).utf8)
            #expect(!excerpt.contains(/[0-9A-Fa-f]{16}/), "\(excerpt)")
            #expect(excerpt.unicodeScalars.contains("…") && excerpt.count <= 60, "\(excerpt)")
        }
        #expect(tokenExcerpt("Dear diary".utf8) == "Dear diary")
    }

    @Test(arguments: [" ", ":", "-"], [1, 2, 4, 8])
    func `An excerpt of a device token in groups shows eight digits`(
        _ separator: String, _ groupCount: Int
    ) {
        let group = String("c60f415da240c4f4".prefix(groupCount))
        let token = Array(repeating: group, count: 64 / groupCount).joined(separator: separator)
        for (before, behind) in [("", ""), ("<", ">"), ("to ", " now"), ("a", "b"), ("a:", ":")] {
            let excerpt = tokenExcerpt((before + token + behind).utf8)
            #expect(excerpt.filter(\.isHexDigit).count <= 9, "\(excerpt)")
            #expect(excerpt.hasPrefix(before) && excerpt.contains("…"), "\(excerpt)")
        }
    }

    @Test(arguments: [
        "00000000-0000-4000-8000-000000000000", "2026-11-28 10:20:30.123456", "00:11:22:33:44:55",
        "-2 to +2, 10:30-12:45",
    ])
    func `An excerpt of digits in few groups shows all of them`(_ text: String) {
        #expect(tokenExcerpt(text.utf8) == text)
    }
}
