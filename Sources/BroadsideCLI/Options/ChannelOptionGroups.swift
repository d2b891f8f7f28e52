import BroadsideCampaigns
import BroadsideSupport

/// Options that `channel` and `broadcast` share.
enum ChannelOptionGroups {
    /// Options of `send` that channels do not have. Each channel host has only one port.
    private static let ofSendOnly: Set<String> = ["port", "content-length"]

    static let endpoint = OptionGroup<SendOptions>(
        title: CredentialOptions.endpoint.title,
        options: CredentialOptions.endpoint.options.filter {
            !ofSendOnly.contains($0.description.name)
        })

    /// The keys of a campaign file that `channel` and `broadcast` read.
    static let campaignKeys = Set(
        (CredentialOptions.credentials.options + endpoint.options).map(\.description.name))

    static let sections = [CredentialOptions.credentials.section, endpoint.section]

    /// Reads credential and endpoint.
    static func connection(_ arguments: ParsedArguments) throws(BroadsideError) -> SendOptions {
        var options = SendOptions()
        for group in [CredentialOptions.credentials, endpoint] {
            try group.read(arguments, into: &options)
        }
        // An Apple host in a campaign file is the host for device pushes, not the host for
        // channels.
        if arguments.isFromFile("endpoint") { try options.replaceAppleEndpoint() }
        return options
    }

    /// Options that `channel` and `broadcast` require.
    static func required(_ arguments: ParsedArguments) -> [RequiredOption] {
        [RequiredOption("app", "BUNDLE")]
            + RequiredOption.toConnect(arguments).filter { $0.names != ["topic"] }
    }
}
