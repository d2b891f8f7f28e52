import BroadsideTestSupport

/// A folder with a payload, and the options of a credential.
struct ChannelCaller {
    let directory: TemporaryDirectory
    let payload: String
    let authority: TestAuthority

    init(payload: String = ChannelCommandTests.update) throws {
        directory = try TemporaryDirectory()
        authority = try TestAuthority.shared()
        self.payload = try directory.write(payload, to: "payload.json")
    }

    var ledger: String { "\(directory.path)/ledger" }

    func credential(_ endpoint: String) -> [String] {
        [
            "--app", Campaign.topic, "--auth-key", authority.authKey, "--key-id",
            Campaign.keyID, "--team-id", Campaign.teamID, "--endpoint", endpoint, "--ca-file",
            authority.caFile,
        ]
    }

    func channel(_ endpoint: String, _ words: [String]) throws -> Finished {
        try Broadside.run(
            ["channel"] + words + credential(endpoint), in: directory, limit: 60)
    }

    func broadcast(
        _ endpoint: String, _ more: [String] = [], channel: String = ChannelCommandTests.channel
    ) throws -> Finished {
        try Broadside.run(
            ["broadcast", "--channel", channel, "--payload", payload]
                + (more.contains("--ledger") ? [] : ["--ledger", ledger]) + more
                + credential(endpoint), in: directory, limit: 120)
    }
}
