import BroadsideSupport
import Testing

@testable import Broadside

struct ServerPauseTests {
    private func begin(
        _ pause: inout ServerPause, at now: UInt64, retryAfter: UInt64? = nil, draw: UInt64 = 0
    ) {
        pause.begin(after: "503", isOutage: true, retryAfter: retryAfter, now: now, draw: draw)
    }

    @Test
    func `Each pause is twice as long as the last one, up to a minute`() {
        var pause = ServerPause()
        for seconds: UInt64 in [1, 2, 4, 8, 16, 32, 60, 60] {
            let now = pause.end
            begin(&pause, at: now)
            #expect(pause.end == now + seconds * second)
        }
        #expect(pause.isOutage && pause.trouble == "503")
    }

    @Test
    func `Troubles during one pause count as one`() {
        var pause = ServerPause()
        for _ in 0..<100 { begin(&pause, at: second / 2) }
        #expect(pause.end == second + second / 2)
        begin(&pause, at: pause.end)
        #expect(pause.end == 3 * second + second / 2)
    }

    @Test
    func `Retry-After replaces the doubling, and jitter never shortens it`() {
        for draw: UInt64 in [0, 7, .max] {
            var pause = ServerPause()
            begin(&pause, at: 0, retryAfter: 30 * second, draw: draw)
            #expect(pause.end >= 30 * second && pause.end < 38 * second)
            begin(&pause, at: second, retryAfter: 90 * second, draw: draw)
            #expect(pause.end == 91 * second)
        }
        var pause = ServerPause()
        begin(&pause, at: 0, retryAfter: .max)
        #expect(pause.end == ServerPause.askedLimit)
    }

    @Test
    func `A response ends the trouble only after the pause`() {
        var pause = ServerPause()
        begin(&pause, at: 0)
        pause.succeed(now: second / 2)
        #expect(pause.isOutage && pause.end == second)
        pause.succeed(now: second)
        #expect(!pause.isOutage && pause.trouble == nil && pause.end == 0)
    }
}
