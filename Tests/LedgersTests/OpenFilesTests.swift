import Campaign
import Foundation
import Support
import Synchronization
import TestSupport
import Testing

@testable import Ledgers

/// Files that are read at any place, of which few are open.
struct OpenFilesTests {
    private let directory: TemporaryDirectory
    private let files = OpenFiles(limit: 4)

    init() throws { directory = try TemporaryDirectory() }

    /// A file of 8,000 bytes that have the same value, opened.
    private func file(_ value: UInt8) throws -> FileBytes {
        let path = "\(directory.path)/\(value)"
        try Data(repeating: value, count: 8_000).write(to: URL(filePath: path))
        return try FileBytes(
            open(path, O_RDONLY | O_CLOEXEC), path: path, ReadingPatience(), files: files)
    }

    private func byte(of file: FileBytes, at offset: UInt64) throws -> UInt8? {
        var bytes: [UInt8] = [0]
        return try bytes.withUnsafeMutableBytes {
            try file.read(at: offset, into: $0) == 1 ? $0[0] : nil
        }
    }

    @Test func `However many there are, each is read, and few are open`() throws {
        var all = try (0..<40).map { try file(UInt8($0)) }
        #expect(all.allSatisfy { $0.byteCount == 8_000 })
        for round: UInt64 in 0..<3 {
            for (value, file) in all.enumerated() {
                #expect(try byte(of: file, at: round * 3_999) == UInt8(value))
                #expect(files.count <= 4)
            }
        }
        #expect(try byte(of: all[0], at: 8_000) == nil)
        #expect(try byte(of: all[0], at: .max) == nil)
        #expect(all.allSatisfy { $0.sync() })
        all.removeAll()
        #expect(files.count == 0)
    }

    @Test func `What has the name of a file that was closed meanwhile is not read`() throws {
        let first = try file(0)
        let others = try (1..<9).map { try file(UInt8($0)) }
        let path = "\(directory.path)/0"
        let kept = "\(directory.path)/kept"
        #expect(rename(path, kept) == 0)
        for isReplaced in [false, true] {
            if isReplaced { try Data(repeating: 9, count: 8_000).write(to: URL(filePath: path)) }
            #expect(throws: LedgerError.self) { try byte(of: first, at: 0) }
            #expect(!first.sync())
        }
        unlink(path)
        #expect(symlink(kept, path) == 0)
        #expect(throws: LedgerError.self) { try byte(of: first, at: 0) }
        unlink(path)
        #expect(rename(kept, path) == 0)
        #expect(try byte(of: first, at: 0) == 0)
        #expect(others.count == 8)
    }

    @Test func `Several threads may read them`() throws {
        let all = try (0..<12).map { try file(UInt8($0)) }
        let wrong = Atomic<Int>(0)
        DispatchQueue.concurrentPerform(iterations: 8) { thread in
            for step in 0..<600 {
                let place = (thread * 5 + step * 7) % all.count
                var bytes = [UInt8](repeating: 0xff, count: 100)
                let count = bytes.withUnsafeMutableBytes {
                    try? all[place].read(at: UInt64(step), into: $0)
                }
                if count != 100 || bytes.contains(where: { $0 != UInt8(place) }) {
                    wrong.add(1, ordering: .relaxed)
                }
            }
        }
        #expect(wrong.load(ordering: .relaxed) == 0)
        #expect(files.count <= 12)
    }

    @Test func `A share of what the process may have open`() {
        #expect(OpenFiles.share(of: 20) == 16)
        #expect(OpenFiles.share(of: 256) == 64)
        #expect(OpenFiles.share(of: 1_024) == 256)
        #expect(OpenFiles.share(of: .max) == 512)
    }
}
