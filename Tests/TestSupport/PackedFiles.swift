import Foundation

/// How a test's list is packed: by the tools that people pack lists with.
package enum Packing: String, CaseIterable, Sendable {
    case plain
    /// Three members, one after the other.
    case gzip
    /// Three frames, with a skippable one between them.
    case zstd

    /// The ending of such a file's name.
    package var ending: String {
        switch self {
        case .plain: ""
        case .gzip: ".gz"
        case .zstd: ".zst"
        }
    }

    /// Writes a file that unpacks to `bytes`; returns its path.
    package func write(
        _ bytes: [UInt8], to name: String, in directory: TemporaryDirectory
    ) throws -> String {
        guard self != .plain else { return try directory.write(bytes, to: name) }
        var packed = Data()
        let size = bytes.count / 3
        for (number, part) in [
            bytes[..<size], bytes[size..<(2 * size)], bytes[(2 * size)...],
        ].enumerated() {
            let piece = try directory.write(Array(part), to: "piece")
            // A skippable frame of five bytes (RFC 8878, section 3.1.2).
            if number == 1, self == .zstd {
                packed += [0x52, 0x2a, 0x4d, 0x18, 5, 0, 0, 0, 1, 2, 3, 4, 5]
            }
            packed += try Data(Packing.run(rawValue, ["-c", piece], in: directory))
        }
        return try directory.write(Array(packed), to: name + ending)
    }

    /// What a file unpacks to, by the tool that its name's ending asks for.
    package static func unpack(_ file: String, in directory: TemporaryDirectory) throws -> [UInt8] {
        if file.hasSuffix(".gz") { return try run("gzip", ["-dc", file], in: directory) }
        if file.hasSuffix(".zst") { return try run("zstd", ["-dc", file], in: directory) }
        return Array(try Data(contentsOf: URL(filePath: file)))
    }

    private static func run(
        _ program: String, _ arguments: [String], in directory: TemporaryDirectory
    ) throws -> [UInt8] {
        let process = try Subprocess(program, arguments, in: directory)
        let finished = try process.wait(limit: 60)
        guard finished.exitCode == 0 else {
            throw TestFailure("\(program) ended with \(finished.exitCode): \(finished.errors)")
        }
        return Array(try Data(contentsOf: URL(filePath: process.outputPath)))
    }
}
