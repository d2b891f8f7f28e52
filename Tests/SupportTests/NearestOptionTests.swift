import BroadsideSupport
import Testing

/// Which option an unknown one leads to. A wrong one is worse than none.
@Suite struct NearestOptionTests {
    /// The options of send, in the order of its help.
    private static let options = """
        tokens format token-column to payload payload-by topic push-type priority expiration collapse-id limit \
        protocol binary-command shard part campaign-id where suppress duplicates split split-salt arm \
        arm-collapse-id arm-priority skip-dead registered-column dead-for cap history deliver-at zone-column \
        zone-default on late quiet keep-tokens campaign print-campaign auth-key auth-key-command key-id team-id \
        auth-token-file auth-token-command certificate private-key passphrase-file environment port endpoint \
        ca-file content-length proxy proxy-auth-file connections max-streams reactors rate rate-per-connection \
        pace hpack max-attempts retry-for on-lost request-timeout give-up-after abort-after max-bad-tokens \
        max-invalid canary canary-max-rejected assume-canary deadline payload-check preview dry-run yes ledger \
        resume resume-or-begin must-resume retry summary name label progress log report metrics trace-frames \
        control hook
        """.split(separator: " ").map(String.init)
    private static let paths = """
        tokens payload suppress skip-dead history campaign auth-key auth-token-file certificate private-key \
        passphrase-file ca-file proxy-auth-file ledger summary report metrics trace-frames control
        """.split(separator: " ").map(String.init)

    private func nearest(_ name: String) -> String? {
        nearestOption(to: name, among: Self.options, paths: Self.paths)
    }

    @Test(arguments: [
        ("auth-key-file", "auth-key"), ("auth-key-path", "auth-key"), ("auth_key_file", "auth-key"),
        ("apns-priority", "priority"), ("apns-topic", "topic"), ("apns-expiration", "expiration"),
        ("apns-push-type", "push-type"), ("apns-collapse-id", "collapse-id"),
        ("tokn", "tokens"), ("tokns", "tokens"), ("toknes", "tokens"), ("colapse", "collapse-id"),
        ("colapse-id", "collapse-id"), ("dry", "dry-run"), ("dryrun", "dry-run"),
        ("dry_run", "dry-run"),
        ("rate-limit", "rate"), ("max-rate", "rate"), ("max-connections", "connections"),
        ("connections-limit", "connections"), ("tokens-file", "tokens"), ("tokens-path", "tokens"),
        ("token-file", "tokens"), ("payload-file", "payload"), ("payload-path", "payload"),
        ("summary-file", "summary"), ("report-file", "report"), ("ledger-path", "ledger"),
        ("ledger-dir", "ledger"), ("ledger-directory", "ledger"),
        ("certificate-file", "certificate"),
        ("certificat-file", "certificate"), ("private-key-file", "private-key"),
        ("suppression-file", "suppress"), ("metrics-file", "metrics"),
        ("campaign-file", "campaign"),
        ("passphras-file", "passphrase-file"), ("passphrase-path", "passphrase-file"),
        ("auth-tokn-file", "auth-token-file"), ("trace-frames-file", "trace-frames"),
        ("give-up", "give-up-after"), ("abort", "abort-after"), ("zone", "zone-column"),
        ("registered", "registered-column"), ("push", "push-type"), ("trace", "trace-frames"),
        ("conections", "connections"), ("enviroment", "environment"), ("paylod", "payload"),
        ("ca-fiel", "ca-file"), ("resume-or-begn", "resume-or-begin"), ("prioritiy", "priority"),
    ])
    func `A guess leads to the option that was meant`(guess: String, option: String) {
        #expect(nearest(guess) == option)
    }

    @Test(arguments: [
        "p8-file", "cert-file", "key-file", "log-file", "rate-file", "limit-path", "max-tokens",
        "max-payload",
        "binary", "content", "dead", "skip", "keep", "auth", "apns", "apns-id", "file", "path",
        "max",
        "tokens-limit", "output-file", "test-file", "color", "threads", "x", "", "id", "sound-file",
    ])
    func `Another word leads to no option`(guess: String) {
        #expect(nearest(guess) == nil)
    }
}
