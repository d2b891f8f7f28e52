import BroadsidePolicy
import Testing

@testable import BroadsideObservability

/// Advice about reasons that this version does not know.
extension StopAdviceTests {
    @Test
    func `A 403 with a reason that this version does not know is advised to look it up`() {
        var refusal = Self.refusal(nil)
        refusal.unknownReason = "KeyRevoked"
        for cause: StopCause in [.refused(refusal), .heldBack(rows: 1, refusal)] {
            let advice = Self.advice(cause, hasEndpoint: true)
            #expect(cause.message.contains("403 KeyRevoked"), "\(cause.message)")
            #expect(!cause.message.contains("never"))
            #expect(advice.steps[0].text.hasPrefix("look up this reason"))
            #expect(advice.steps[0].command?.hasPrefix("broadside doctor") == true)
            #expect(advice.steps.count == 2 && advice.steps[1].text.contains("--resume"))
        }
        let topics = Self.advice(.topicsRefused(detail: "com.example.a", refusal))
        #expect(topics.steps[0].text.hasPrefix("look up this reason"), "\(topics.steps)")
    }
}
