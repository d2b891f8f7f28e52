import BroadsideHygiene
import BroadsidePolicy
import BroadsideSupport
import Testing

@testable import BroadsideCampaigns
@testable import BroadsideEngine

/// What a run begins with, what it may grow to, and how that is divided among its reactors.
@Suite(.timeLimit(.minutes(60))) struct ConnectionTargetTests {
    static let longList: UInt64 = 65 * 2_000_000

    func shape(
        _ list: UInt64 = longList, cores: Int = 2, descriptors: UInt64 = 1024,
        _ change: (inout SendOptions) -> Void = { _ in }
    ) -> RunShape {
        var options = SendOptions()
        change(&options)
        return RunShape(
            options, listByteCount: list, cores: cores, descriptors: descriptors)
    }

    @Test
    func `A run begins with few connections and may grow unless options or list fix their number`()
    {
        #expect(shape().connections == 4 && shape().connectionsMost == 64)
        #expect(shape { $0.rate = 400 }.connections == 1)
        #expect(shape { $0.rate = 400 }.connectionsMost == 64)
        for fixed in [
            shape { $0.connections = 4 }, shape { $0.maxStreams = 100 }, shape(64_999),
            shape { $0.wireProtocol = .binary }, shape { $0.reactors = 64 },
        ] {
            #expect(!fixed.grows && fixed.connectionsMost == fixed.connections)
        }
        #expect(shape(64_999).connections == 1)
        // Two descriptors for each connection: one drains while another takes its place.
        #expect(shape(descriptors: 76).connectionsMost == 20)
        #expect(!shape(descriptors: 30).grows)
    }

    @Test func `A run begins with one reactor unless options set their number`() {
        let many = shape(cores: 12)
        #expect(many.reactors == 6 && many.reactorsAtFirst == 1)
        #expect(shape(65 * 100_000, cores: 12).reactors == 1)
        let asked = shape(cores: 12) { $0.reactors = 3 }
        #expect(asked.reactors == 3 && asked.reactorsAtFirst == 3 && asked.connections == 4)
        let fixed = shape(cores: 12) { $0.connections = 4 }
        #expect(fixed.reactors == 4 && fixed.reactorsAtFirst == 4)
        // All reactors together keep to the burst of the rate.
        for (rate, most) in [(0.001, 1), (99, 1), (100, 1), (250, 2), (800, 8)] {
            let slow = shape(cores: 12) {
                ($0.rate, $0.connections, $0.reactors) = (SendRate(rate), 8, 8)
            }
            #expect(slow.reactors == most, "\(rate)")
        }
    }

    /// Number of connections that the options set, whether the options name outlets, the limit on
    /// open files, the exit code and the message's end; 0: the run may begin.
    @Test(
        arguments: [
            (nil, false, 36, 1, "(ulimit -n 37)"), (nil, false, 37, 0, ""),
            (1, false, 36, 1, "(ulimit -n 37)"), (1, false, 37, 0, ""),
            (4, false, 36, 1, "(ulimit -n 52)"),
            (4, false, 51, 2, "(ulimit -n 52) or use fewer connections"), (4, false, 52, 0, ""),
            (nil, true, 82, 1, "(ulimit -n 83)"), (nil, true, 83, 0, ""),
        ] as [(Int?, Bool, UInt64, Int32, String)])
    func `Too few open files are the request's fault only if it asks for more connections than fit`(
        _ connections: Int?, _ hasOutlets: Bool, _ allowed: UInt64, _ code: Int32, _ end: String
    ) {
        var options = SendOptions()
        (options.connections, options.reactors) = (connections, connections)
        if hasOutlets { (options.control, options.metrics) = ("control", "127.0.0.1:0") }
        let shape = RunShape(options, listByteCount: 650, cores: 8, descriptors: allowed)
        var found = BroadsideError("", exitCode: 0)
        do throws(BroadsideError) {
            try shape.checkOpenFiles(options, allowed: allowed)
        } catch {
            found = error
        }
        #expect(found.exitCode == code)
        #expect(found.message.hasSuffix(end), "\(found.message)")
        #expect(found.message.contains("--connections") == (code == 2))
    }

    @Test func `A number of connections that the run chose is not blamed on an option`() throws {
        let chosen = shape(descriptors: 38)
        #expect(chosen.connections == 4 && chosen.reactors == 1)
        let error = #expect(throws: BroadsideError.self) {
            try chosen.checkOpenFiles(SendOptions(), allowed: 38)
        }
        #expect(error?.exitCode == 1 && error?.option == nil)
        #expect(
            error?.message == "a run needs 40 open files, but only 38 are allowed here: raise the "
                + "limit (ulimit -n 40), or add --connections 1")
    }

    @Test func `New connections go to the reactors with the fewest`() {
        let target = ConnectionTarget(connections: 5, reactors: 4, active: 2)
        func shares() -> [Int] { (0..<4).map { target.share(of: $0) } }
        #expect(target.first == [3, 2, 0, 0] && shares() == target.first && target.total == 5)
        let version = target.version
        target.grow(to: 10, reactors: 2)
        #expect(shares() == [5, 5, 0, 0] && target.version != version)
        target.grow(to: 13, reactors: 3)
        #expect(shares() == [5, 5, 3, 0])
        target.grow(to: 16, reactors: 4)
        #expect(shares() == [5, 5, 3, 3])
        target.grow(to: 8, reactors: 4)
        #expect(shares() == [5, 5, 3, 3] && target.first == [3, 2, 0, 0])
    }

    @Test func `A thread's share of CPU time is that between two samples`() {
        let earlier = ThreadUse(cpuNanoseconds: 100, atNanoseconds: 1000)
        #expect(ThreadUse(cpuNanoseconds: 600, atNanoseconds: 2000).share(since: earlier) == 0.5)
        #expect(earlier.share(since: earlier) == nil)
    }

    @Test func `Each reason for the number of connections is described with its figures`() {
        typealias Reason = ConnectionGrowth.Reason
        #expect(
            Reason.noGain(from: 8, percent: 3).words(connections: 16)
                == "more would not help: 16 instead of 8 changed throughput by 3%")
        #expect(
            Reason.rateKept(perSecond: 5000).words(connections: 4)
                == "enough for the rate of 5,000/s")
    }
}
