import Foundation
import Glibc

@testable import BroadsideSimulator

/// Bytes of a hexadecimal string.
func hexBytes(_ text: String) -> [UInt8] {
    let digits = Array(text.utf8).compactMap { TokenOutcome.hexValue($0) }
    precondition(digits.count == text.utf8.count && digits.count.isMultiple(of: 2))
    return stride(from: 0, to: digits.count, by: 2).map { digits[$0] << 4 | digits[$0 + 1] }
}

/// A folder that is gone after the test.
final class Folder {
    let path: String

    init() {
        var template = Array("/tmp/simulator-XXXXXX".utf8CString)
        precondition(mkdtemp(&template) != nil)
        path = String(decoding: template.prefix { $0 != 0 }.map(UInt8.init), as: UTF8.self)
    }

    deinit { try? FileManager.default.removeItem(atPath: path) }

    func file(_ name: String) -> String { "\(path)/\(name)" }

    func write(_ name: String, _ text: String) throws -> String {
        try Data(text.utf8).write(to: URL(fileURLWithPath: file(name)))
        return file(name)
    }
}

/// A command's end.
struct CommandResult {
    let status: Int32
    let output: String
    let errors: String
}

/// Runs a command to its end, at most so many seconds.
func run(_ words: [String], seconds: Int = 30) throws -> CommandResult {
    let folder = Folder()
    let process = Process()
    process.executableURL = URL(fileURLWithPath: "/usr/bin/env")
    process.arguments = ["timeout", "-s", "KILL", "\(seconds)"] + words
    // Files, not pipes: no command can stall on a full one.
    _ = FileManager.default.createFile(atPath: folder.file("out"), contents: nil)
    _ = FileManager.default.createFile(atPath: folder.file("err"), contents: nil)
    process.standardOutput = FileHandle(forWritingAtPath: folder.file("out"))
    process.standardError = FileHandle(forWritingAtPath: folder.file("err"))
    process.standardInput = FileHandle.nullDevice
    try process.run()
    process.waitUntilExit()
    func text(_ name: String) throws -> String {
        String(
            decoding: try Data(contentsOf: URL(fileURLWithPath: folder.file(name))), as: UTF8.self)
    }
    return CommandResult(
        status: process.terminationStatus, output: try text("out"), errors: try text("err"))
}

/// Whether a command is installed; the interoperability tests need Debian's packages.
func isInstalled(_ command: String) -> Bool {
    (try? run(["sh", "-c", "command -v \(command)"]).status == 0) ?? false
}

extension Array<UInt8> {
    /// Lends these bytes; as a closure, since `#expect` takes no span.
    func withBytes<Result>(_ body: (RawSpan) throws -> Result) rethrows -> Result {
        try body(span.bytes)
    }
}
