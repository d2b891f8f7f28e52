import APNs
import Broadside

/// `broadside payload`: a payload, looked at before it is sent.
enum PayloadCommand {
    static let description: CommandDescription = CommandDescription(
        name: "payload",
        summary: "check: validate a payload, its size and its keys against Apple's rules",
        usage: "check --payload FILE | --payload-by COLUMN=DIR [OPTIONS]",
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
                        "payload-by", "COLUMN=DIR",
                        "every payload of a directory, as send would choose among them"),
                    .init(
                        "push-type", "TYPE", "the apns-push-type it is sent with (default: alert)"),
                    .init("topic", "TOPIC", "the apns-topic, compared with the push type"),
                    .init("json", nil, "print what was found as JSON, a line a file"),
                ])
        ],
        examples: [
            .init(
                "Look at one payload",
                "broadside payload check --payload payload.json --push-type alert"),
            .init(
                "Look at a payload for each language, and at the one for all others",
                "broadside payload check --payload-by lang=texts --payload payload.json"),
        ],
        subcommands: ["check"],
        run: { (arguments) throws(CommandFailure) in
            try arguments.expectSubcommand(of: description)
            if !arguments.has("payload-by") { _ = try arguments.required("payload", "FILE") }
            let pushType = try arguments.choice("push-type", PushType.self) ?? .alert
            let reports: [PayloadReport]
            do throws(BroadsideError) {
                reports = try Self.reports(arguments, pushType)
            } catch {
                throw CommandFailure(message: error.message, exitCode: error.exitCode)
            }
            for report in reports {
                if reports.count > 1, !arguments.has("json") { print("file      \(report.file)") }
                print(arguments.has("json") ? report.json : report.text, terminator: "")
            }
            guard let failure = PayloadReport.failure(of: reports) else { return 0 }
            throw .usage(failure)
        })

    private static func reports(
        _ arguments: ParsedArguments, _ pushType: PushType
    ) throws(BroadsideError) -> [PayloadReport] {
        let topic = arguments.string("topic")
        var reports: [PayloadReport] = []
        if let file = arguments.string("payload") {
            reports.append(try PayloadReport(file: file, pushType: pushType, topic: topic))
        }
        guard let option = arguments.string("payload-by") else { return reports }
        let choices = try PayloadReport.directory(option, pushType: pushType, topic: topic)
        if reports.isEmpty, !choices.contains(where: \.isDefault) {
            standardErrorLine("broadside: warning: \(PayloadReport.missingDefault(option))")
        }
        return choices + reports
    }
}
