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
        (
            "--tokens /app--to-users--limit.csv: no such file",
            "Campaign.tokens /app--to-users--limit.csv: no such file"
        ),
        ("'--topic' (--rate), --name.", "'Campaign.topic' (RunOptions.rate), Campaign.name."),
        (
            "check the key, --key-id and --team-id, which must belong together",
            "check the key, Campaign.credential, which must belong together"
        ),
        ("add --tokens FILE, or --to TOKEN", "add Campaign.tokens"),
        ("gave up: no response for 2 s: doctor shows more", "gave up: no response for 2 s"),
        (
            "check --topic; see which rows were refused: broadside ledger export --ledger x",
            "check Campaign.topic"
        ),
        ("standard input contains no rows", "Campaign.tokens contains no rows"),
        ("stopped by broadside control", "stopped on request"),
    ])
    func `A message in terms of options speaks of properties`(message: String, expected: String) {
        #expect(PropertyName.translated(message) == expected)
    }

    @Test(
        arguments: [
            ("--payload, line 1, column 2: no", "Campaign.payload"),
            ("standard input contains no rows", "Campaign.tokens"), ("no --payload", nil),
        ] as [(String, String?)])
    func `A message names the property with which it begins`(message: String, expected: String?) {
        #expect(PropertyName.property(ofMessage: message) == expected)
    }
}
