import BroadsideSupport
import Testing

@testable import BroadsideCampaigns

/// The URI of a key in a PKCS#11 token.
@Suite struct TokenURITests {
    @Test(arguments: ["?pin-value=4711", ";pin-value=4711", "?pin-source=pin&pin-value=4711"])
    func `A PIN in the URI is refused and not shown, wherever it is`(part: String) {
        let error = #expect(throws: BroadsideError.self) {
            try SendOptions.checkKey("pkcs11:token=apns;object=push\(part)")
        }
        #expect(error?.message.contains("contains a pin-value (it is not shown here)") == true)
        #expect(error?.message.contains("4711") == false)
    }
}
