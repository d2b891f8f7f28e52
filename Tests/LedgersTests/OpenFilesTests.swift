import BroadsideLedgerFormat
import BroadsideSupport
import BroadsideTestSupport
import Foundation
import Synchronization
import Testing

@testable import BroadsideLedgers

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

    @Test func `Any number of segments is read with few open files`() throws {
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

    @Test func `A replaced file of the same name is not read`() throws {
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

    @Test func `Several threads may read segments`() throws {
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

    /// Stands for a file; whether the descriptor that was given away for it is open.
    private final class OpenedFile {
        let descriptor: Int32
        private let writer: Int32
        var identifier: ObjectIdentifier { ObjectIdentifier(self) }

        init() {
            var ends: [Int32] = [-1, -1]
            #expect(pipe(&ends) == 0)
            for end in ends { _ = fcntl(end, F_SETFD, FD_CLOEXEC) }
            (descriptor, writer) = (ends[0], ends[1])
        }

        deinit { close(writer) }

        /// A pipe that no descriptor reads from is broken.
        var isOpen: Bool {
            var end = pollfd(fd: writer, events: 0, revents: 0)
            return poll(&end, 1, 0) == 0
        }
    }

    @Test func `The least recently used file is closed`() {
        let all = (0..<6).map { _ in OpenedFile() }
        for file in all.prefix(4) { files.add(file.descriptor, of: file.identifier) }
        #expect(files.use(all[0].identifier, open: { -1 }) { $0 } == all[0].descriptor)
        for file in all.suffix(2) { files.add(file.descriptor, of: file.identifier) }
        #expect(all.map(\.isOpen) == [true, false, false, true, true, true])
        for file in all { files.remove(file.identifier) }
        #expect(files.count == 0 && !all.contains { $0.isOpen })
    }

    @Test func `A file that is being read stays open`() {
        let one = OpenFiles(limit: 1)
        let all = (0..<3).map { _ in OpenedFile() }
        let isOpen = one.use(all[0].identifier, open: { all[0].descriptor }) { _ in
            one.add(all[1].descriptor, of: all[1].identifier)
            return all[0].isOpen && all[1].isOpen
        }
        #expect(isOpen == true)
        one.add(all[2].descriptor, of: all[2].identifier)
        #expect(all.map(\.isOpen) == [false, false, true])
        one.remove(all[2].identifier)
    }

    @Test func `Two threads that open one file leave one descriptor`() {
        let (first, second) = (OpenedFile(), OpenedFile())
        let used = files.use(
            first.identifier,
            open: {
                files.add(first.descriptor, of: first.identifier)
                return second.descriptor
            }, { $0 })
        #expect(used == first.descriptor && first.isOpen && !second.isOpen)
        files.remove(first.identifier)
    }

    @Test(arguments: [EMFILE, EIO])
    func `If no more files can be opened the others are closed and it is retried`(number: Int32) {
        let (idle, file) = (OpenedFile(), OpenedFile())
        files.add(idle.descriptor, of: idle.identifier)
        var attempts = 0
        let used = files.use(
            file.identifier,
            open: {
                attempts += 1
                if attempts > 1 { return file.descriptor }
                errno = number
                return -1
            }, { $0 })
        let isRepeated = number == EMFILE
        #expect(attempts == (isRepeated ? 2 : 1))
        #expect(used == (isRepeated ? file.descriptor : nil) && idle.isOpen != isRepeated)
        for file in [idle, file] { files.remove(file.identifier) }
        if !isRepeated { close(file.descriptor) }
    }

    @Test func `The limit of open files is a share of the process's`() {
        #expect(OpenFiles.share(of: 20) == 16)
        #expect(OpenFiles.share(of: 256) == 64)
        #expect(OpenFiles.share(of: 1_024) == 256)
        #expect(OpenFiles.share(of: .max) == 512)
    }
}
