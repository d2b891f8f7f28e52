import BroadsideHygiene
import Testing

@testable import BroadsideCampaigns

@Suite struct PruneTopicTests {
    @Test(
        arguments: [
            ("a", "production", "environments, development and production, "),
            ("b", "development", "topics, a and b, "),
        ])
    func `A warning about ledgers of two apps or environments says in what they differ`(
        topic: String, environment: String, words: String
    ) throws {
        let scopes = [
            TokenScope(topic: "a", environment: "development"),
            TokenScope(topic: topic, environment: environment),
        ]
        let warning = try #require(PruneTopic.any.warning(scopes, scopes))
        #expect(
            warning.hasPrefix(
                "the ledgers have different \(words)and a token that is alive for one can be dead "
                    + "for the other: "), "\(warning)")
        #expect(PruneTopic.any.warning(scopes, [scopes[0], scopes[0]]) == nil)
    }
}
