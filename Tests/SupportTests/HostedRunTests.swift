import Glibc
import Synchronization
import Testing

@testable import BroadsideSupport

struct HostedRunTests {
    @Test
    func `Threads of a hosted run know it, and their messages go to its host alone`() async throws {
        let (lines, sink) = AsyncStream.makeStream(of: String.self)
        let hosts = [0, 1].map { number in HostedRun { sink.yield("\(number) \($0)") } }
        for host in hosts {
            try host.start {
                let inner = try? WorkerThread { standardErrorLine("from within") }
                inner?.join()
            }
        }
        var seen: Set<String> = []
        for await line in lines {
            seen.insert(line)
            if seen.count == 2 { break }
        }
        #expect(seen == ["0 from within", "1 from within"])
        #expect(HostedRun.current == nil)
    }

    @Test
    func `A thread of a hosted run blocks the host's signals, and the host's thread does not`()
        async throws
    {
        let before = [SIGINT, SIGTERM, SIGUSR1].map { SignalSet.blocked.contains($0) }
        let masks = await withCheckedContinuation { continuation in
            do {
                try HostedRun { _ in }.start {
                    continuation.resume(
                        returning: [SIGINT, SIGTERM, SIGUSR1, SIGSEGV].map {
                            SignalSet.blocked.contains($0)
                        })
                }
            } catch {
                continuation.resume(returning: [])
            }
        }
        #expect(masks == [true, true, true, false])
        #expect([SIGINT, SIGTERM, SIGUSR1].map { SignalSet.blocked.contains($0) } == before)
    }

    @Test
    func `Stop requests are taken one by one, and a run ignores those of another run`() throws {
        let (host, other) = (HostedRun { _ in }, HostedRun { _ in })
        for _ in 0..<5 { host.requestStop() }
        try HostedRun.$current.withValue(other) {
            try SignalWatch.stopIfRequested()
            #expect(!SignalWatch.isStopPending)
        }
        try HostedRun.$current.withValue(host) {
            let watch = SignalWatch()
            #expect(throws: BroadsideError.self) { try SignalWatch.stopIfRequested() }
            #expect(watch.isStopTaken(milliseconds: 0))
            #expect(watch.isStopTaken(milliseconds: 0))
            #expect(!watch.isStopTaken(milliseconds: 1))
            try SignalWatch.stopIfRequested()
        }
    }

    @Test
    func `Preparation that takes longer than the deadline ends with the deadline's error`() {
        let host = HostedRun { _ in }
        let error = HostedRun.$current.withValue(host) {
            #expect(throws: BroadsideError.self) {
                try SignalWatch().prepare(deadline: 1) { () throws(BroadsideError) in
                    while true {
                        try SignalWatch.stopIfRequested()
                        usleep(1_000)
                    }
                }
            }
        }
        #expect(error?.message.contains("deadline passed") == true)
        #expect(HostedRun.$current.withValue(host) { !SignalWatch.isStopPending })
    }
}
