import APNs
import Broadside

/// `broadside doctor`.
enum DoctorCommand {
    static let description: CommandDescription = CommandDescription(
        name: "doctor",
        summary: "one connection to APNs with these credentials: what works, and what does not",
        usage: "--topic TOPIC CREDENTIAL [OPTIONS]",
        discussion: """
            Resolves, connects, shakes hands, and sends one request to a device token that no device
            can have. From the answer it says whether credential, topic, environment and clock are
            right, and what to do where they are not. No device gets anything.

            Exit codes: 0 all is in order; 1 APNs can't be reached; 2 the request is wrong; 4 APNs
            refuses credential, topic or environment.
            """,
        sections: [
            OptionSection(
                title: "What to ask",
                options: [
                    .init("topic", "TOPIC", "apns-topic, as in send"),
                    .init("push-type", "TYPE", "apns-push-type (default: alert)"),
                    .init("json", nil, "the findings as JSON"),
                    .init(
                        "print-token", nil,
                        "print the provider token, for other tools, and connect nowhere"),
                ]),
            CredentialOptions.credentials,
            CredentialOptions.endpoint,
        ],
        examples: [
            .init(
                "Ask before the first night whether APNs takes key, team, topic and environment",
                #"""
                broadside doctor --environment development --topic com.example.MyApp \
                    --auth-key AuthKey_XXXXXXXXXX.p8 --key-id XXXXXXXXXX \
                    --team-id YYYYYYYYYY
                """#)
        ],
        run: { (arguments) throws(CommandFailure) in
            try arguments.refuseWords(of: description)
            try arguments.require(
                RequiredOption.toConnect(arguments).filter {
                    $0.names != ["topic"] || !arguments.has("print-token")
                })
            var options = SendOptions()
            options.topic = arguments.string("topic")
            if let type = try arguments.choice("push-type", PushType.self) {
                options.pushType = type
            }
            try CredentialOptions.read(arguments, into: &options)
            do throws(BroadsideError) {
                if arguments.has("print-token") {
                    print(try DoctorRun.token(options))
                    return 0
                }
                return try DoctorRun.run(options, asJSON: arguments.has("json"))
            } catch {
                throw CommandFailure(message: error.message, exitCode: error.exitCode)
            }
        })
}
