import BroadsideCampaigns
import BroadsideSupport

/// `broadside doctor`: checks the machine, the credentials and the connection to APNs.
enum DoctorCommand: Command {
    static let name = "doctor"

    static let description: CommandDescription = CommandDescription(
        name: name,
        summary: "check this machine, the credentials and the connection to APNs",
        usage: "--topic TOPIC CREDENTIAL [OPTIONS]",
        discussion: """
            Checks this machine: io_uring, open files, locked memory, whether OpenSSL uses the
            processor's VAES, and space and speed of the ledger's disk. Then it resolves the host,
            connects, does the TLS handshake, and sends one request to a device token that no device can
            have. The response shows whether credential, topic, environment and clock are right. For each
            mistake, doctor prints what to do. No device receives anything.

            With --survey or --compare, it sends harmless requests instead: wrong paths, methods, header
            fields, payloads and credentials, all to a token of zeros. It records status, reason, header
            fields and body of each response. The file contains no secret, no address and no device token.

            Exit codes: 0 all is well; 1 APNs can't be reached, this machine can't run a campaign, or
            two surveys differ; 2 the request is wrong; 4 APNs refuses credential, topic or environment.
            """,
        sections: [
            OptionSection(
                title: "What to check",
                options: [CampaignOptions.file("credential, topic and endpoint")]
                    + [topic, SendCommand.pushType].map(\.description) + [
                        .init(
                            "ledger", .file(.ledger), "DIR",
                            "check space and speed of the disk that will hold this ledger"),
                        .init("json", .flag, nil, "the findings as JSON"),
                        .init(
                            "survey", .file(.written), "FILE",
                            "write how the endpoint responds to harmless requests; - is standard "
                                + "output"),
                        .init(
                            "compare", .file(.read), "FILE",
                            "list the differences between the endpoint's responses and the survey FILE; "
                                + "given twice: compare two surveys without connecting",
                            isRepeatable: true),
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
                "Check this machine, and everything that a campaign file names",
                "broadside doctor --campaign evening.json5 --ledger tonight"),
            .init(
                "Note how APNs responds to harmless requests, to compare it with the simulator",
                #"""
                broadside doctor --survey apns.json --environment development \
                    --topic com.example.MyApp --auth-key AuthKey_XXXXXXXXXX.p8 \
                    --key-id XXXXXXXXXX --team-id YYYYYYYYYY
                """#),
        ],
        essentials: [
            "campaign", "topic", "auth-key", "key-id", "team-id", "certificate",
            "environment", "endpoint", "json", "compare",
        ],
        campaignKeys: Set(
            ["topic", "push-type", "ledger"]
                + (CredentialOptions.credentials.section.options
                + CredentialOptions.endpoint.section.options).map(\.name)),
        run: { (arguments) throws(BroadsideError) in
            try arguments.rejectWords(of: description)
            for name in ["json", "survey", "compare"]
            where arguments.has(name) && arguments.has("print-token") {
                throw .usage("print-token", "and --\(name) exclude each other: remove one")
            }
            let compared = arguments.strings("compare")
            let isJSON = arguments.has("json")
            guard compared.count <= 2 else {
                throw .usage("compare", "is given \(compared.count) times: name one or two files")
            }
            if compared.count == 2 {
                guard !arguments.has("survey") else {
                    throw .usage(
                        "survey",
                        "needs an endpoint, but two --compare files are compared without connecting: "
                            + "remove --survey, or one --compare")
                }
                return try SurveyRun.compare(compared[0], compared[1], asJSON: isJSON)
            }
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
            let survey = arguments.string("survey")
            if survey != nil || compared.count == 1 {
                return try SurveyRun.run(
                    options, output: survey, compared: compared.first, asJSON: isJSON)
            }
            return try DoctorRun.run(options, asJSON: isJSON)
        })

    private static let topic = Option<SendOptions>.text(
        "topic", "TOPIC", \.topic, "apns-topic, as in send")
}
