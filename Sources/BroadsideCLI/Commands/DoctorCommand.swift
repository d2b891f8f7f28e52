import BroadsideCampaigns
import BroadsideSupport

/// `broadside doctor`: checks the machine, the credentials and the connection to APNs.
enum DoctorCommand {
    static let description: CommandDescription = CommandDescription(
        name: "doctor",
        summary: "check this machine, the credentials and the connection to APNs",
        usage: "--topic TOPIC CREDENTIAL [OPTIONS]",
        discussion: """
            Checks this machine (io_uring, open files, locked memory, whether OpenSSL uses the
            processor's VAES, room and speed of the ledger's disk), then resolves the host, connects,
            does the TLS handshake, and sends one request to a device token that no device can have.
            The response shows whether credential, topic, environment and clock are right; for each
            that is wrong, doctor says what to do. No device receives anything.

            Exit codes: 0 all is well; 1 APNs can't be reached, or this machine can't run a
            campaign; 2 the request is wrong; 4 APNs refuses credential, topic or environment.
            """,
        sections: [
            OptionSection(
                title: "What to check",
                options: [CampaignOptions.file("credential, topic and endpoint")]
                    + [topic, SendCommand.pushType].map(\.description) + [
                        .init(
                            "ledger", .file(.ledger), "DIR",
                            "check room and speed of the disk on which this ledger will be"),
                        .init("json", .flag, nil, "the findings as JSON"),
                        .init(
                            "print-token", .flag, nil,
                            "print the provider token, for other tools, without connecting"),
                    ]),
            CredentialOptions.credentials.section,
            CredentialOptions.endpoint.section,
        ],
        examples: [
            .init(
                "Check that APNs accepts key, team, topic and environment",
                #"""
                broadside doctor --environment development --topic com.example.MyApp \
                    --auth-key AuthKey_XXXXXXXXXX.p8 --key-id XXXXXXXXXX \
                    --team-id YYYYYYYYYY
                """#),
            .init(
                "Check this machine, and all that a campaign file names",
                "broadside doctor --campaign evening.json5 --ledger tonight"),
        ],
        essentials: [
            "campaign", "topic", "auth-key", "key-id", "team-id", "certificate",
            "environment", "endpoint", "ledger", "json",
        ],
        campaignKeys: Set(
            ["topic", "push-type", "ledger"]
                + (CredentialOptions.credentials.section.options
                + CredentialOptions.endpoint.section.options).map(\.name)),
        run: { (arguments) throws(BroadsideError) in
            try arguments.rejectWords(of: description)
            try arguments.require(
                RequiredOption.toConnect(arguments).filter {
                    $0.names != ["topic"] || !arguments.has("print-token")
                })
            var options = SendOptions()
            for option in [topic, SendCommand.pushType] {
                try option.read(arguments, &options)
            }
            for group in [CredentialOptions.credentials, CredentialOptions.endpoint] {
                try group.read(arguments, into: &options)
            }
            options.ledger = arguments.string("ledger")
            if arguments.has("print-token") {
                print(try DoctorRun.token(options))
                return 0
            }
            return try DoctorRun.run(options, asJSON: arguments.has("json"))
        })

    private static let topic = Option<SendOptions>.text(
        "topic", "TOPIC", \.topic, "apns-topic, as in send")
}
