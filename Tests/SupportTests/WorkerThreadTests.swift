import Foundation
import Testing

@testable import BroadsideSupport

/// A thread that runs one closure.
@Suite(.timeLimit(.minutes(60))) struct WorkerThreadTests {
    private final class Thing: Sendable {}

    @Test func `A worker thread releases what it used at its end`() throws {
        var thing: Thing? = Thing()
        weak let seen = thing
        let gate = BoundedQueue<Void>(limit: 1)
        let thread = try WorkerThread { [thing] in
            _ = gate.take()
            withExtendedLifetime(thing) {}
        }
        thing = nil
        #expect(seen != nil && !thread.hasEnded)
        gate.close()
        thread.join()
        #expect(seen == nil && thread.hasEnded)
    }
}
