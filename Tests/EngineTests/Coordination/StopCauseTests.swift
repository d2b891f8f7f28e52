import Campaign
import Testing

@testable import Engine

@Suite struct StopCauseTests {
    @Test func `A disk that fails is the cause, whatever came before`() {
        let coordinator = RunCoordinator(
            authorization: nil, issuedAt: 0, milliRate: nil, abortAfter: 50,
            maxBadTokensPercent: 50, sign: nil)
        coordinator.stop(.signal)
        coordinator.stop(.deadline)
        #expect(coordinator.stopCause == .signal)
        coordinator.stop(.ledgerFailed(detail: "full"))
        coordinator.stop(.signal)
        #expect(coordinator.stopCause == .ledgerFailed(detail: "full"))
    }
}
