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

    @Test func `Limits on memory are named only if there are any`() {
        let processes = "processes (ulimit -u, a container's pids limit)"
        #expect(WorkerThread.limits(addressSpace: nil, data: nil) == processes)
        #expect(
            WorkerThread.limits(addressSpace: 1, data: nil)
                == "memory (ulimit -v) or on \(processes)")
        #expect(
            WorkerThread.limits(addressSpace: nil, data: 1)
                == "memory (ulimit -d, LimitDATA= in a unit) or on \(processes)")
        #expect(
            WorkerThread.limits(addressSpace: 1, data: 1)
                == "memory (ulimit -v, ulimit -d, LimitDATA= in a unit) or on \(processes)")
    }

    @Test func `A thread that a seccomp profile forbids is blamed on no limit`() {
        let forbidden = WorkerThread.advice(errno: EPERM, fewer: "reactors")
        #expect(forbidden.contains("allow clone3") && !forbidden.contains("limit"))
        let limited = WorkerThread.advice(errno: EAGAIN, fewer: "threads")
        #expect(limited.hasPrefix("raise the limit on ") && limited.hasSuffix("fewer --threads"))
        #expect(!WorkerThread.advice(errno: EAGAIN, fewer: nil).contains("--"))
    }

    @Test func `A thread that was joined and released is none of the process's any more`() throws {
        for _ in 0..<300 {
            let numbers = BoundedQueue<Int?>(limit: 1)
            let thread = try WorkerThread { numbers.put(SystemCall.threadNumber) }
            thread.joinAndRelease()
            let number = try #require(numbers.take() ?? nil)
            #expect(!SystemCall.exists("/proc/self/task/\(number)"))
        }
        let own = try #require(SystemCall.threadNumber)
        #expect(SystemCall.exists("/proc/self/task/\(own)"))
    }
}
