import Testing

@testable import BroadsideCampaigns

/// The names of key files, and the IDs of keys.
@Suite struct KeyFileNameTests {
    @Test(
        arguments: [
            ("AuthKey_ABC123DEFG.p8", true), ("keys/AuthKey_ABC123DEFG (1).p8", true),
            ("AuthKey_ABC123DEFG copy.p8", true), ("AuthKey_ABC123DEFGH.p8", false),
            ("AuthKey_ABC123.p8", false), ("AuthKey_abc123defg (1).p8", false),
            ("AuthKey_ABC123DEFG (1).pem", false),
        ])
    func `The name of a key file has its key ID, also the name of a copy`(
        name: String, hasID: Bool
    ) {
        #expect(Credential.keyIDInName(name) == (hasID ? "ABC123DEFG" : nil))
    }

    @Test func `One ID for both the key and the team causes a warning`() {
        func warning(_ teamID: String) -> String? {
            Credential.sameIDWarning(keyID: "ABC123DEFG", teamID: teamID)
        }
        #expect(warning("DEF123GHIJ") == nil)
        #expect(warning("ABC123DEFG")?.contains("are both ABC123DEFG, but Apple gives") == true)
    }
}
