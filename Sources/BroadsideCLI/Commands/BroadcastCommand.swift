import BroadsideCampaigns
import BroadsideAPNs
import BroadsideSupport

/// `broadside broadcast`: sends to a broadcast channel.
enum BroadcastCommand: Command {
    static let name = "broadcast"

    static let description: CommandDescription = CommandDescription(
        name: name,
        summary: "send one payload to all subscribers of a broadcast channel",
        usage: "--app BUNDLE --channel ID --payload FILE CREDENTIAL --ledger DIR [OPTIONS]",
        discussion: """
            Sends one request, which updates or ends the Live Activities that subscribed to the
            channel. APNs does not report the number of these devices. The ledger has one row with
            the request's ID, status and reason. The commands ledger stats, ledger find, report and
            status show this row.

            The broadcast is sent again only if APNs certainly did not process it: after 429, 500 or
            503, or if the request was refused before it was processed. If the response is lost, the
            outcome is unknown, and only --retry unknown sends the broadcast again. If the ledger shows
            that the broadcast was accepted or refused, a further start sends nothing.

            Exit codes: 0 accepted, now or earlier; 1 APNs can't be reached; 2 the request is wrong;
            3 APNs asks for a wait of more than 60 seconds, processed no attempt, or can't be reached
            again after a wait: the same command sends the broadcast later; 4 APNs refuses the broadcast; 5 the ledger can't be written;
            6 failed, or unknown; 7 another process uses the ledger.
            """,
        sections: [
            group.section.adding([CampaignOptions.file("credential, environment and endpoint")])
        ]
            + ChannelOptionGroups.sections,
        examples: [
            .init(
                "Update all activities of a match",
                #"""
                broadside broadcast --app com.example.MyApp \
                    --channel XW6Lh1Y1xIPMYq5jlLkMJw== \
                    --payload goal.json --ledger goal-1 \
                    --auth-key AuthKey_XXXXXXXXXX.p8 --key-id XXXXXXXXXX \
                    --team-id YYYYYYYYYY
                """#),
            .init(
                "Show the request; send nothing",
                #"""
                broadside broadcast --app com.example.MyApp \
                    --channel XW6Lh1Y1xIPMYq5jlLkMJw== \
                    --payload goal.json --preview 1 \
                    --auth-key AuthKey_XXXXXXXXXX.p8 --key-id XXXXXXXXXX \
                    --team-id YYYYYYYYYY
                """#),
        ],
        essentials: [
            "app", "channel", "payload", "ledger", "priority", "expiration", "auth-key", "key-id",
            "team-id", "environment",
        ],
        campaignKeys: ChannelOptionGroups.campaignKeys,
        run: { (arguments) throws(BroadsideError) in
            try arguments.rejectWords(of: description)
            let sendsNothing = arguments.has("preview") || arguments.has("dry-run")
            try arguments.require(
                ChannelOptionGroups.required(arguments) + [
                    RequiredOption("channel", "ID"), RequiredOption("payload", "FILE"),
                ] + (sendsNothing ? [] : [.ledger]))
            var options = BroadcastOptions()
            try group.read(arguments, into: &options)
            options.request.connection = try ChannelOptionGroups.connection(arguments)
            return try BroadcastRun.run(options)
        })

    private static let group = OptionGroup<BroadcastOptions>(
        title: "Broadcast",
        options: [
            .text("app", "BUNDLE", \.request.app, "the app's bundle ID, without a suffix"),
            .text(
                "channel", "ID", \.request.channel, "the channel's ID, as channel create printed it"
            ),
            .file(
                "payload", \.payload,
                "the JSON payload: event update or end, timestamp, content-state; at most 5,120 bytes"
            ),
            .file(
                "ledger", \.ledger, use: .ledger, placeholder: "DIR",
                "directory for the outcome: new, or that of an earlier start of this broadcast"),
            .priority(
                ["10", "5", "1"],
                "apns-priority: 10 at once, 5 when power allows, 1 lowest (default: 10)"
            ) { (priority, options) in options.priority = priority },
            .expiration(
                "until when APNs keeps the broadcast for subscribers that are away: 0, Unix seconds, a date (ISO 8601, UTC unless it has an offset), or +2h after the first start; at most 8 hours; must be 0 if the channel stores nothing (default: 0)"
            ) { (expiration, options) in options.expiration = expiration },
            .custom(
                "retry", .choice(["failed", "unknown", "failed,unknown"]), "STATES",
                "send again a broadcast that an earlier start left in these states"
            ) { (text, options) throws(BroadsideError) in
                options.retry = try reopenedStates(text)
            },
            .integer(
                "max-attempts", 1...100, \.attemptsMax,
                "maximum number of attempts if APNs is overloaded; the first waits are 1, 2 and 4 seconds"
            ),
            .choice(
                "payload-check", \.payloadCheck,
                "refuse a payload with errors, or send it all the same"),
            .custom("name", .text, "TEXT", "name for status and report") { (text, options) in
                options.name = SecretText.masked(text)
            },
            .flag("yes", \.request.isConfirmed, "do not ask for confirmation before production"),
            .flag("json", \.request.isJSON, "print the outcome as JSON"),
            .flag(
                "dry-run", \.request.isDryRun,
                "check everything and print the plan; connect to nothing, write nothing"),
            .integer(
                "preview", 1...SendOptions.previewLimit, \.request.preview,
                "print the request as it would be sent; connect to nothing, write nothing"),
        ])
}

extension BroadcastOptions: OptionValues {
    static var defaults: BroadcastOptions { BroadcastOptions() }
}
