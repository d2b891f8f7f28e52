import BroadsideCampaigns
import BroadsideSupport

/// Options that `channel` and `broadcast` share.
enum ChannelOptionGroups {
    /// Options of a send that have no meaning for channels: their hosts have one port each.
    private static let ofSendOnly: Set<String> = ["port", "content-length"]

    static let endpoint = OptionGroup<SendOptions>(
        title: CredentialOptions.endpoint.title,
        options: CredentialOptions.endpoint.options.filter {
            !ofSendOnly.contains($0.description.name)
        })

    /// Keys of a campaign file that the commands read: its endpoint is for device pushes.
    static let campaignKeys = Set(
        (CredentialOptions.credentials.options + endpoint.options).map(\.description.name)
    ).subtracting(["endpoint"])

    static let sections = [CredentialOptions.credentials.section, endpoint.section]

    /// Reads credential and endpoint.
    static func connection(_ arguments: ParsedArguments) throws(BroadsideError) -> SendOptions {
        var options = SendOptions()
        for group in [CredentialOptions.credentials, endpoint] {
            try group.read(arguments, into: &options)
        }
        return options
    }

    /// Options that both commands require.
    static func required(_ arguments: ParsedArguments) -> [RequiredOption] {
        [RequiredOption("app", "BUNDLE")]
            + RequiredOption.toConnect(arguments).filter { $0.names != ["topic"] }
    }
}
