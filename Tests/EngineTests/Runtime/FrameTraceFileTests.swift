import BroadsideSupport
import Foundation
import Testing

@testable import BroadsideEngine
@testable import BroadsideHTTP2

@Suite struct FrameTraceFileTests {
    @Test func `A request's token is shortened in each header`() {
        let token = "0123456789abcdef0123456789abcdef"
        func line(_ path: String) -> String {
            let headers = [
                (":path", path), ("apns-collapse-id", "for \(token.uppercased())"),
                ("apns-topic", "com.example.Broadside"), ("apns-id", token),
                ("authorization", "bearer \(token)"),
            ]
            let header = FrameHeader(length: 0, type: .headers, flags: [], streamID: 1)
            let frame = TracedFrame(
                header: header, fields: headers.map { (Array($0.utf8), Array($1.utf8)) },
                payload: [])
            return FrameTraceLine.text(frame, connection: 1, isSent: true, milliseconds: 0)
        }
        let traced = line("/3/device/\(token)")
        #expect(!traced.lowercased().contains(token))
        for part in [
            "\"/3/device/01234567...\"", "\"for 01234567…\"", "\"com.example.Broadside\"",
            "\"bearer (39 bytes)\"",
        ] {
            #expect(traced.contains(part), "\(traced)")
        }
        // The end of another path is not a token.
        let broadcast = line("/4/broadcasts/apps/com.example.Broadside")
        #expect(broadcast.contains("\"com.example.Broadside\""), "\(broadcast)")
    }

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
