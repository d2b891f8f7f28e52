import BroadsideSupport
import Testing

@testable import BroadsideCampaigns

/// Endings of a request that a signal interrupts.
struct RequestInterruptionTests {
    @Test func `Only what APNs did not process is certain, and the rest is exit 6`() {
        for operation in RequestInterruption.Operation.allCases {
            for phase in RequestInterruption.Phase.allCases {
                let ending = RequestInterruption.ending(of: operation, phase)
                let certain = operation == .broadcast ? ExitCode.rowsRemain : ExitCode.failure
                #expect(
                    ending.exitCode == (phase == .notProcessed ? certain : ExitCode.openRows))
                let message = "\(ending.message)"
                #expect(message.hasPrefix("stopped by a signal: "))
                #expect(message.contains("may have been") == (phase != .notProcessed))
                #expect(!message.contains("\n"))
            }
        }
    }
}
