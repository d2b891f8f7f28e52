import BroadsideCampaigns
import BroadsideSupport
internal import Glibc

/// The files of a benchmark, in a directory that is removed when this object is released.
final class BenchFiles {
    let path: String
    private var rows = 0

    /// Maximum number of rows in the list, with 65 bytes per row.
    static let rowsLimit = 20_000_000

    var list: String { "\(path)/tokens.txt" }
    var payload: String { "\(path)/payload.json" }

    init(payloadCount: Int) throws(BroadsideError) {
        let parent = SystemCall.environment("TMPDIR") ?? "/tmp"
        var template = Array("\(parent)/broadside-bench-XXXXXX".utf8CString)
        // SAFETY: the template ends with a zero byte, and mkdtemp(3) overwrites only its last six
        // letters.
        guard unsafe mkdtemp(&template) != nil else {
            throw BroadsideError(
                "no directory can be made in \(parent): set TMPDIR to another directory",
                exitCode: 5)
        }
        path = String(decoding: template.dropLast().map { UInt8(bitPattern: $0) }, as: UTF8.self)
        let (head, tail) = (#"{"aps":{"alert":""#, #""}}"#)
        let filling = String(repeating: "x", count: payloadCount - head.count - tail.count)
        try append(Array((head + filling + tail).utf8), to: payload)
    }

    deinit { Self.remove(path) }

    /// Removes a directory and all that is in it.
    private static func remove(_ directory: String) {
        for name in SystemCall.names(inDirectory: directory) ?? [] {
            let path = "\(directory)/\(name)"
            if SystemCall.unlink(path) != 0 { remove(path) }
        }
        SystemCall.rmdir(directory)
    }

    /// Extends the list to at least `count` rows.
    func extendList(to count: Int, _ signals: BenchSignals) throws(BroadsideError) {
        let digits = Array("0123456789abcdef".utf8)
        while rows < count {
            try signals.check()
            let end = min(count, rows + 16_384)
            var lines: [UInt8] = []
            lines.reserveCapacity((end - rows) * 65)
            for row in rows..<end {
                for part in 0..<4 {
                    // Deterministic: each benchmark sends the same tokens, all of them different.
                    var word = splitmix64(UInt64(row) << 2 | UInt64(part))
                    for _ in 0..<16 {
                        lines.append(digits[Int(word & 15)])
                        word >>= 4
                    }
                }
                lines.append(0x0a)
            }
            try append(lines, to: list)
            rows = end
        }
    }

    /// Text of a file; empty if there is none.
    static func text(_ path: String) -> String {
        let bytes = try? readFile(path, shownAs: InputName(path, option: "output"), limit: .max)
        return String(decoding: bytes ?? [], as: UTF8.self)
    }

    private func append(_ bytes: [UInt8], to file: String) throws(BroadsideError) {
        let descriptor = SystemCall.open(file, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0o600)
        defer { if descriptor >= 0 { close(descriptor) } }
        do throws(BroadsideError) {
            try writeAll(bytes, to: descriptor, name: file)
        } catch {
            throw BroadsideError(
                "\(file) can't be written: free some space, or set TMPDIR to another place",
                exitCode: 5)
        }
    }
}
