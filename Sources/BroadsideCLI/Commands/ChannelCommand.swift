import BroadsideCampaigns
import BroadsideAPNs
import BroadsideSupport

/// `broadside channel`: manages broadcast channels.
enum ChannelCommand: Command {
    static let name = "channel"

    static let description: CommandDescription = CommandDescription(
        name: name,
        summary: "create | read | list | delete a broadcast channel for Live Activities",
        usage: "create|read|list|delete --app BUNDLE CREDENTIAL [OPTIONS]",
        discussion: """
            create  makes a channel and prints its ID, which the app's Live Activities subscribe to
            read    prints what APNs stores for a channel
            list    prints the IDs of all channels of the app, one per line
            delete  deletes a channel for good; asks first, unless --yes is given

            A channel belongs to one app and one environment. Its storage never changes. An app has
            at most 10,000 channels; broadside broadcast sends to one of them. If the response to create
            is lost, the request is not repeated, because APNs may already have created the channel.

            If --endpoint HOST has no port, the port is 2196; it is 2195 with --environment development
            or if HOST is Apple's for development.

            Exit codes: 0 done; 1 APNs can't be reached, or is overloaded; 2 the request is wrong; 4 APNs
            refuses the request; 6 it is unknown whether a channel was created or deleted.
            """,
        sections: sections,
        examples: [
            .init(
                "Create a channel that keeps the newest broadcast",
                #"""
                broadside channel create --app com.example.MyApp --storage newest \
                    --auth-key AuthKey_XXXXXXXXXX.p8 --key-id XXXXXXXXXX \
                    --team-id YYYYYYYYYY
                """#),
            .init(
                "List all channels of the development environment",
                #"""
                broadside channel list --app com.example.MyApp \
                    --environment development \
                    --auth-key AuthKey_XXXXXXXXXX.p8 --key-id XXXXXXXXXX \
                    --team-id YYYYYYYYYY
                """#),
            .init(
                "Delete a channel without a question",
                #"""
                broadside channel delete --app com.example.MyApp \
                    --channel XW6Lh1Y1xIPMYq5jlLkMJw== --yes \
                    --auth-key AuthKey_XXXXXXXXXX.p8 --key-id XXXXXXXXXX \
                    --team-id YYYYYYYYYY
                """#),
        ],
        subcommands: ChannelOptions.Action.allCases.map(\.rawValue),
        subcommandOptions: ownOptions,
        essentials: [
            "app", "channel", "storage", "auth-key", "key-id", "team-id", "environment", "endpoint",
            "yes", "json",
        ],
        campaignKeys: ChannelOptionGroups.campaignKeys,
        run: { (arguments) throws(BroadsideError) in
            let word = try arguments.expectSubcommand(of: description)
            guard let action = ChannelOptions.Action(rawValue: word) else {
                preconditionFailure("the word was checked")
            }
            let needsChannel = action == .read || action == .delete
            try arguments.require(
                ChannelOptionGroups.required(arguments)
                    + (needsChannel ? [RequiredOption("channel", "ID")] : []))
            try arguments.rejectOtherOptions(than: word, of: description)
            var options = ChannelOptions()
            options.action = action
            try group.read(arguments, into: &options)
            options.request.connection = try ChannelOptionGroups.connection(arguments)
            return try ChannelRun.run(options)
        })

    private static var sections: [OptionSection] {
        [group.section.adding([CampaignOptions.file("credential, environment and endpoint")])]
            + ChannelOptionGroups.sections
    }

    /// Options of each subcommand: all but those that only others accept.
    private static var ownOptions: [String: Set<String>] {
        let all = Set(sections.flatMap(\.options).map(\.name))
        return [
            "create": all.subtracting(["channel", "yes"]),
            "read": all.subtracting(["storage", "yes"]),
            "list": all.subtracting(["channel", "storage", "yes"]),
            "delete": all.subtracting(["storage"]),
        ]
    }

    private static let group = OptionGroup<ChannelOptions>(
        title: "Channel",
        options: [
            .text("app", "BUNDLE", \.request.app, "the app's bundle ID, without a suffix"),
            .text(
                "channel", "ID", \.request.channel,
                "read, delete: the channel's ID, as create printed it"),
            .choice(
                "storage", \.storage,
                "create: what APNs keeps for subscribers that are away: nothing, or the newest broadcast for up to 8 hours"
            ),
            .flag("yes", \.request.isConfirmed, "delete: do not ask for confirmation"),
            .flag("json", \.request.isJSON, "print the result as JSON"),
            .flag(
                "dry-run", \.request.isDryRun,
                "check everything and print the plan; connect to nothing"),
            .integer(
                "preview", 1...SendOptions.previewLimit, \.request.preview,
                "print the request as it would be sent; connect to nothing"),
        ])
}

extension ChannelOptions: OptionValues {
    static var defaults: ChannelOptions { ChannelOptions() }
}
