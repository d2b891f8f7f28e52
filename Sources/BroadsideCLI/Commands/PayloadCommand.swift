import BroadsideCampaigns
import BroadsideAPNs
import BroadsideSupport

/// `broadside payload`: checks a payload before it is sent.
enum PayloadCommand: Command {
    static let name = "payload"

    static let description: CommandDescription = CommandDescription(
        name: name,
        summary: "check: validate a payload, its size and its keys against Apple's rules",
        usage: "check --payload FILE | --payload-by COLUMN=DIR | --arm ARM=FILE [OPTIONS]",
        discussion: """
            Reports problems with line and column: invalid JSON, duplicate keys, the size, wrong keys and
            types in aps and alert, content that the push type does not allow, and keys that look
            misspelt. Anything that is only suspicious is a warning. With --broadcast the rules are
            those of broadcast channels and of push type liveactivity.

            The push types, with their topics, priorities and largest payloads:

            \(pushTypes)

            Nothing is sent. Exit codes: 0 it can be sent; 2 it can't be sent.
            """,
        sections: [
            group.section.adding([CampaignOptions.file("payloads, push type and topic")])
        ],
        examples: [
            .init(
                "Check one payload",
                "broadside payload check --payload payload.json --push-type alert"),
            .init(
                "Check a payload for each language, and the one for all others",
                "broadside payload check --payload-by lang=texts --payload payload.json"),
            .init(
                "Check an update for a broadcast channel",
                "broadside payload check --payload goal.json --broadcast"),
        ],
        subcommands: ["check"],
        campaignKeys: ["payload", "payload-by", "arm", "push-type", "topic"],
        run: { (arguments) throws(BroadsideError) in
            try arguments.expectSubcommand(of: description)
            try arguments.require([RequiredOption("payload", "FILE", rare: ["payload-by", "arm"])])
            var values = Values.defaults
            try group.read(arguments, into: &values)
            if values.isBroadcast { try checkBroadcast(arguments, &values) }
            let reports = try Self.reports(values)
            // The first error of the first failed report is printed last, on stderr.
            let failed = reports.firstIndex { $0.failure != nil }
            for (index, report) in reports.enumerated() {
                if reports.count > 1, !values.isJSON { printText("file      \(report.file)\n") }
                let text = index == failed ? report.restText : report.text
                print(values.isJSON ? report.json : text, terminator: "")
            }
            guard let failure = PayloadReport.failure(of: reports) else { return 0 }
            throw .request(failure)
        })

    /// A line for each push type.
    private static var pushTypes: String {
        PushType.allCases.map { type in
            let topic =
                switch (type.topicSuffix, type.rules.credential) {
                case (let suffix?, _): "bundle ID + \(suffix)"
                case (nil, .managementCertificate): "UID of the certificate's subject"
                case (nil, _): "bundle ID"
                }
            let priorities = type.rules.priorities.all.map { "\($0.rawValue)" }
            let name = type.rawValue + String(repeating: " ", count: 14 - type.rawValue.count)
            return name + "\(topic); \(priorities.joined(separator: ", ")); "
                + "\(type.rules.maximumPayloadCount) bytes"
        }.joined(separator: "\n")
    }

    /// The values of the command's options.
    private struct Values: OptionValues {
        var payload: String?
        var payloadBy: String?
        var arms: [String] = []
        var pushType = PushType.alert
        var topic: String?
        var isBroadcast = false
        var isJSON = false

        static let defaults = Values()
    }

    private static let group = OptionGroup<Values>(
        title: "Options",
        options: [
            .file("payload", \.payload, "the JSON payload"),
            .custom(
                "payload-by", .columnDirectory, "COLUMN=DIR",
                "check every payload in a directory, as send --payload-by uses it"
            ) { (text, values) throws(BroadsideError) in values.payloadBy = text },
            .repeated(
                "arm", .namedFile, "ARM=FILE", \.arms,
                "check the payload of an arm, as send --arm uses it; may be repeated"),
            .choice(
                "push-type", \.pushType, placeholder: "TYPE",
                "apns-push-type to check against: \(SendCommand.pushTypes)"),
            .text(
                "topic", "TOPIC", \.topic,
                "apns-topic to compare with the push type, unless it contains {{column}}"),
            .flag(
                "broadcast", \.isBroadcast,
                "check as a payload for a broadcast channel, of push type liveactivity"),
            .flag("json", \.isJSON, "print the findings as JSON, one line per file"),
        ])

    /// Sets the push type of broadcasts, and refuses options that a broadcast does not have.
    private static func checkBroadcast(
        _ arguments: ParsedArguments, _ values: inout Values
    ) throws(BroadsideError) {
        for name in ["payload-by", "arm", "topic"] where arguments.has(name) {
            throw .usage(name, "does not work with --broadcast: remove one of them")
        }
        guard !arguments.has("push-type") || values.pushType == .liveActivity else {
            throw .usage(
                "push-type",
                "\(values.pushType.rawValue) does not work with --broadcast: remove --push-type")
        }
        values.pushType = .liveActivity
    }

    private static func reports(_ values: Values) throws(BroadsideError) -> [PayloadReport] {
        let pushType = values.pushType
        // Only the list shows which topics rows name.
        let topic = values.topic.flatMap { $0.contains("{{") ? nil : $0 }
        var reports: [PayloadReport] = []
        if let file = values.payload {
            reports.append(
                try PayloadReport(
                    file: file, pushType: pushType, topic: topic, isBroadcast: values.isBroadcast))
        }
        if let option = values.payloadBy {
            let choices = try PayloadReport.directory(option, pushType: pushType, topic: topic)
            if reports.isEmpty, !choices.contains(where: \.isDefault) {
                standardErrorLine("broadside: warning: \(PayloadReport.missingDefault(option))")
            }
            reports = choices + reports
        }
        for text in values.arms {
            guard let parts = text.parts(atFirst: "="), !parts.before.isEmpty,
                !parts.behind.isEmpty
            else { throw .usage("arm", "'\(printable(text))' is not ARM=FILE: correct it") }
            reports.append(
                try PayloadReport(
                    file: String(parts.behind), pushType: pushType, topic: topic, option: "arm"))
        }
        return reports
    }
}
