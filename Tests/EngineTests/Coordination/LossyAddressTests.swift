import BroadsideHygiene
import BroadsideRing
import BroadsideRows
import BroadsideSupport
import Testing

@testable import BroadsideEngine

/// A server that ends one connection after the other with requests in flight.
@Suite(.timeLimit(.minutes(60)))
struct LossyAddressTests {
    private static let address = SocketAddress.v4(0x0a00_0001, port: 443)

    @Test(arguments: [
        (1, 0 as UInt64, true), (1, 4, false), (1, 3, true), (250, 1000, false), (251, 1003, true),
        (251, 1004, false), (0, 0, false),
    ])
    func `A connection that lost more than a quarter of its responses makes its address lossy`(
        lost: Int, responses: UInt64, isLossy: Bool
    ) {
        let addresses = LossyAddresses()
        addresses.connectionEnded(Self.address, lost: lost, responses: responses)
        #expect(addresses.contains(Self.address) == isLossy)
        addresses.proved(Self.address)
        #expect(!addresses.contains(Self.address))
    }

    @Test func `Lossy addresses are remembered up to the limit, the latest ones`() {
        let addresses = LossyAddresses()
        let all = (0...UInt32(LossyAddresses.limit)).map { SocketAddress.v4($0, port: 443) }
        for address in all { addresses.connectionEnded(address, lost: 1, responses: 0) }
        #expect(!addresses.contains(all[0]))
        #expect(all.dropFirst().allSatisfy { addresses.contains($0) })
    }

    @Test(arguments: [1, 40])
    func `A server that ends each connection after few responses loses few rows of a list`(
        responses: Int
    ) throws {
        let rows = 3000
        let run = try ScriptedRun(rows: rows)
        run.reply = { request in
            let made = run.requests.count { $0.connection == request.connection }
            if made <= responses { return .status(200) }
            // All that go out together are in flight when the connection ends.
            if made == responses + 1 { run.hangUp(request.connection) }
            return .silence
        }
        run.run(for: 60 * second)
        let settled = try run.rows()
        let lost = settled.count { $0.state == .unknown }
        let accepted = settled.count { $0.state == .accepted }
        // The first connection knows nothing yet; each other one risks what its responses are worth.
        let first = run.requests.count { $0.connection == 0 }
        let risk = max(1, responses / Int(LossyAddresses.responsesEach))
        #expect(accepted >= 20 * responses)
        #expect(lost <= first + (run.links.count - 1) * risk, "\(lost) of \(accepted + lost)")
        #expect(lost >= run.links.count - 2)
    }

    /// What is in flight when each request of the connection is made that comes after one which ends
    /// with all that it has; without that one, nothing is lost.
    private func inFlight(afterLoss: Bool) throws -> [Int] {
        let run = try ScriptedRun(rows: 20_000)
        var inFlight: [Int] = []
        run.reply = { request in
            guard afterLoss, request.connection == 0 else {
                inFlight.append(run.reactors[0].machine.openRequests)
                return .status(200)
            }
            if request.stream == 99 { run.hangUp(0) }
            return .silence
        }
        run.run()
        #expect(!run.coordinator.resources.lossyAddresses.contains(.v4(0x0a00_0001, port: 443)))
        return inFlight
    }

    @Test func `A connection without losses gets all its streams again`() throws {
        let counts = try inFlight(afterLoss: true)
        #expect(counts.count == 20_000 - 50)
        #expect(counts.prefix(8).allSatisfy { $0 == 1 }, "\(counts.prefix(20))")
        #expect(counts[100] <= 25 && counts[1000] <= 250)
        #expect(try counts.max() == inFlight(afterLoss: false).max())
    }
}
