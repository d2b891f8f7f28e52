import BroadsideLedgers
import BroadsideLegacyGateway
import BroadsideSupport
import Foundation
import Testing

@testable import BroadsideCampaigns

@Suite struct FeedbackLedgerTests {
    @Test func `A feedback service that never ends is recorded up to the limit of tuples`() throws {
        let path = FileManager.default.temporaryDirectory.path + "/\(UUID())"
        defer { try? FileManager.default.removeItem(atPath: path) }
        let ledger = try FeedbackLedger(path: path, now: Clock.now(), tuplesLimit: 1000)
        var number: UInt8 = 0
        var error: BroadsideError?
        for _ in 0..<100 where error == nil {
            let tuples = (0..<64).map { _ in
                number &+= 1
                return FeedbackTuple(unixSeconds: 1_700_000_000, token: [number, 2, 3, 4])
            }
            do throws(BroadsideError) {
                try ledger.append(tuples, now: Clock.now())
            } catch let failure {
                error = failure
            }
        }
        let failure = try #require(error)
        #expect(failure.exitCode == 1 && failure.message.contains("more than 1,000 tokens"))
        #expect(ledger.count == 1000)
        try ledger.finish()
        let verified = try LedgerReader(path: path).verify()
        #expect(verified.contains("1,000 rows reserved") && verified.contains(", finished"))
        #expect(FeedbackLedger.tuplesLimit <= 10_000_000)
    }
}
