import Testing

@testable import Broadside

struct PropertyNameTests {
    @Test(arguments: [
        ("--topic is missing: add --topic ID", "Campaign.topic is missing: add Campaign.topic"),
        ("--auth-key FILE holds no key", "Campaign.credential holds no key"),
        ("raise --max-bad-tokens", "raise SendOptions.maxBadTokens"),
        ("--give-up-after 5s", "RunOptions.giveUpAfter 5s"),
        (
            "run the same command with --resume to continue",
            "run it again with RunOptions.ledgerUse = .resume to continue"
        ),
        ("--resume-or-begin begins", "RunOptions.ledgerUse = .resumeOrBegin begins"),
        ("a -- b, a---b", "a -- b, a---b"),
    ])
    func `A message in terms of options speaks of properties`(message: String, expected: String) {
        #expect(PropertyName.translated(message) == expected)
    }
}
