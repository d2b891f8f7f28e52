import Glibc
import Testing

@testable import BroadsideSupport

/// Lines that are redrawn in place, among other output.
@Suite struct OutputQueueTests {
    /// All that is written to a queue.
    private func written(_ body: (OutputQueue) -> Void) -> String {
        var ends: [Int32] = [-1, -1]
        #expect(pipe(&ends) == 0)
        let queue = OutputQueue(ends[1])
        body(queue)
        close(ends[1])
        defer { close(ends[0]) }
        var room = [UInt8](repeating: 0, count: 65_536)
        let count = read(ends[0], &room, room.count)
        return String(decoding: room[..<max(0, count)], as: UTF8.self)
    }

    @Test func `Shown lines follow each text at once`() {
        let erase = "\r\u{1b}[2A\u{1b}[J"
        let text = written { queue in
            queue.show(["one", "two"])
            queue.put("a notice\n")
            queue.show(["three"])
            queue.put("another\n")
        }
        #expect(
            text == "one\ntwo\n" + erase + "a notice\none\ntwo\n" + erase + "three\n"
                + "\r\u{1b}[1A\u{1b}[Janother\nthree\n", "\(text.debugDescription)")
    }

    @Test func `Lines that were taken back are not shown again`() {
        let text = written { queue in
            queue.show(["one"])
            queue.show([])
            queue.put("the end\n")
        }
        #expect(text == "one\n\r\u{1b}[1A\u{1b}[Jthe end\n", "\(text.debugDescription)")
    }
}
