import APNs
import Broadside
import Support

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
            group.section.adding([CampaignOptions.file("payload, push type and topic")])
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
        campaignKeys: ["payload", "payload-by", "push-type", "topic"],
        run: { (arguments) throws(BroadsideError) in
            try arguments.expectSubcommand(of: description)
            if !arguments.has("payload-by") { _ = try arguments.required("payload", "FILE") }
            var values = Values.defaults
            try group.read(arguments, into: &values)
            let reports = try Self.reports(values)
            for report in reports {
                if reports.count > 1, !values.isJSON { print("file      \(report.file)") }
                print(values.isJSON ? report.json : report.text, terminator: "")
            }
            guard let failure = PayloadReport.failure(of: reports) else { return 0 }
            throw .request(failure)
        })

    /// What the command is asked to do.
    private struct Values: OptionValues {
        var payload: String?
        var payloadBy: String?
        var pushType = PushType.alert
        var topic: String?
        var isJSON = false

        static let defaults = Values()
    }

    private static let group = OptionGroup<Values>(
        title: "Options",
        options: [
            .file("payload", \.payload, "the JSON payload"),
            .custom(
                "payload-by", .columnDirectory, "COLUMN=DIR",
                "every payload of a directory, as send would choose among them"
            ) { (text, values) throws(BroadsideError) in values.payloadBy = text },
            .choice(
                "push-type", \.pushType, placeholder: "TYPE",
                "the apns-push-type it is sent with"),
            .text("topic", "TOPIC", \.topic, "the apns-topic, compared with the push type"),
            .flag("json", \.isJSON, "print what was found as JSON, a line a file"),
        ])

    private static func reports(_ values: Values) throws(BroadsideError) -> [PayloadReport] {
        let (pushType, topic) = (values.pushType, values.topic)
        var reports: [PayloadReport] = []
        if let file = values.payload {
            reports.append(try PayloadReport(file: file, pushType: pushType, topic: topic))
        }
        guard let option = values.payloadBy else { return reports }
        let choices = try PayloadReport.directory(option, pushType: pushType, topic: topic)
        if reports.isEmpty, !choices.contains(where: \.isDefault) {
            standardErrorLine("broadside: warning: \(PayloadReport.missingDefault(option))")
        }
        return choices + reports
    }
}
