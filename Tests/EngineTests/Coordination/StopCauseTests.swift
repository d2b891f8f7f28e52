import BroadsidePolicy
import Testing

@testable import BroadsideEngine

@Suite struct StopCauseTests {
    @Test func `A failing disk is the stop cause, whatever came before`() {
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

    @Test func `A ledger taken by another attempt is the stop cause, whatever else happened`() {
        for first in [StopCause.signal, .ledgerFailed(detail: "full")] {
            let coordinator = RunCoordinator(
                authorization: nil, issuedAt: 0, milliRate: nil, abortAfter: 50,
                maxBadTokensPercent: 50, sign: nil)
            coordinator.stop(first)
            coordinator.stop(.superseded)
            #expect(coordinator.stopCause == .superseded)
            coordinator.stop(.ledgerFailed(detail: "full"))
            #expect(coordinator.stopCause == .superseded)
        }
    }
}
