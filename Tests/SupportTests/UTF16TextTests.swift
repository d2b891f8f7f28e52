import BroadsideSupport
import Foundation
import Testing

@Suite struct UTF16TextTests {
    @Test func `UTF-16 and UTF-32 are recognized, and the printed command converts it`() throws {
        let text = "{\"aps\":{\"alert\":\"Grüße\"}}"
        let folder = FileManager.default.temporaryDirectory.appending(path: UUID().uuidString)
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        defer { try? FileManager.default.removeItem(at: folder) }
        for (encoding, mark) in [
            (String.Encoding.utf16LittleEndian, [0xff, 0xfe] as [UInt8]),
            (.utf16BigEndian, [0xfe, 0xff]), (.utf16LittleEndian, []), (.utf16BigEndian, []),
            (.utf32LittleEndian, [0xff, 0xfe, 0, 0]), (.utf32BigEndian, [0, 0, 0xfe, 0xff]),
        ] {
            let bytes = mark + Array(try #require(text.data(using: encoding)))
            let found = UTF16Text.problem(bytes.rawSpan)
            let problem = try #require(found)
            let command = try #require(problem.split(separator: "'").dropFirst().first)
            try Data(bytes).write(to: folder.appending(path: "FILE"))
            let process = Process()
            process.executableURL = URL(fileURLWithPath: "/bin/sh")
            process.currentDirectoryURL = folder
            process.arguments = ["-c", String(command)]
            try process.run()
            process.waitUntilExit()
            #expect(process.terminationStatus == 0)
            let converted = try String(
                contentsOf: folder.appending(path: "NEWFILE"), encoding: .utf8)
            #expect(converted == text)
        }
        for other in [text, "", "{}", "日本語", "a\0"] {
            let bytes = Array(other.utf8)
            let found = UTF16Text.problem(bytes.rawSpan)
            #expect(found == nil)
        }
    }
}
