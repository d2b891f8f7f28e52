import Campaign
import Testing

@testable import Engine

@Suite struct StopCauseTests {
    @Test func `A disk that fails is the cause, whatever came before`() {
        let shared = SharedRun(
            authorization: nil, issuedAt: 0, milliRate: nil, abortAfter: 50,
            maxBadTokensPercent: 50, sign: nil)
        shared.stop(.signal)
        shared.stop(.deadline)
        #expect(shared.stopCause == .signal)
        shared.stop(.ledgerFailed(detail: "full"))
        shared.stop(.signal)
        #expect(shared.stopCause == .ledgerFailed(detail: "full"))
    }
}
