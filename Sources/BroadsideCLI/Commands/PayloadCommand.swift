import APNs
import Broadside

/// `broadside payload`: a payload, looked at before it is sent.
enum PayloadCommand {
    static let description: CommandDescription = CommandDescription(
        name: "payload",
        summary: "check: validate a payload, its size and its keys against Apple's rules",
        usage: "check --payload FILE [OPTIONS]",
        discussion: """
            Names the line and column of what is wrong: the JSON itself, keys that are there twice,
            the size, keys and types of aps and alert, content that the push type does not allow, and
            keys that look like misspelt ones. What only looks strange is a warning.

            Nothing is sent. Exit codes: 0 it can be sent; 2 it must not be.
            """,
        sections: [
            OptionSection(
                title: "Options",
                options: [
                    .init("payload", "FILE", "the JSON payload"),
                    .init(
                        "push-type", "TYPE", "the apns-push-type it is sent with (default: alert)"),
                    .init("topic", "TOPIC", "the apns-topic, compared with the push type"),
                    .init("json", nil, "print what was found as JSON"),
                ])
        ],
        subcommands: ["check"],
        run: { (arguments) throws(CommandFailure) in
            try arguments.expectSubcommand(of: description)
            let file = try arguments.required("payload", "FILE")
            let pushType = try arguments.choice("push-type", PushType.self) ?? .alert
            let report: PayloadReport
            do throws(BroadsideError) {
                report = try PayloadReport(
                    file: file, pushType: pushType, topic: arguments.string("topic"))
            } catch {
                throw CommandFailure(message: error.message, exitCode: error.exitCode)
            }
            print(arguments.has("json") ? report.json : report.text, terminator: "")
            if let failure = report.failure { throw .usage(failure) }
            return 0
        })
}
