import BroadsideSupport
import Foundation
import Testing

@testable import BroadsideEngine

@Suite struct FrameTraceFileTests {
    @Test func `A file that exists becomes readable only by its owner`() throws {
        let path = "\(NSTemporaryDirectory())/frames-\(UUID().uuidString)"
        defer { unlink(path) }
        try Data("old".utf8).write(to: URL(filePath: path))
        try #require(chmod(path, 0o644) == 0)
        let trace = try FrameTraceFile(path)
        #expect(trace.failure == nil)
        let information = try #require(SystemCall.status(path))
        #expect(information.st_mode & 0o777 == 0o600 && information.st_size == 0)
    }

    @Test func `In a run that stops, a trace whose disk hangs ends at once`() throws {
        let path = "\(NSTemporaryDirectory())/frames-\(UUID().uuidString)"
        try #require(mkfifo(path, 0o600) == 0)
        defer { unlink(path) }
        // A pipe without a reader hangs like a disk. It stays open, because the writer's thread does
        // not end.
        _ = open(path, O_RDWR | O_CLOEXEC)
        let trace = try FrameTraceFile(path)
        let lines = String(repeating: "x", count: 3 << 20) + "\n"
        trace.append(lines)
        trace.setStopping(true)
        let begun = Clock.now().nanoseconds
        for _ in 0..<4 { trace.append(lines) }
        let waited = Clock.now().nanoseconds - begun
        #expect(waited < 4 * second, "\(waited)")
        #expect(trace.failure?.contains(path) == true)
    }
}
