public import BroadsideAPNs
import BroadsideCampaigns
internal import BroadsideSupport
public import FoundationEssentials

/// One notification for many devices.
public struct Campaign: Sendable {
    /// Content of the notification. `{{name}}` in it stands for each row's value of the field
    /// `name`.
    public enum Payload: Sendable {
        /// JSON. The limit is 4,096 bytes (5,120 for VoIP), without blanks between its tokens.
        case json(Data)
        /// File with the JSON.
        case file(URL)
    }

    /// Topic of the app, usually its bundle identifier.
    public var topic: String
    /// Credential of the sender.
    public var credential: APNsCredential
    /// Content of the notification.
    public var payload: Payload
    /// Devices, and the values of their fields.
    public var tokens: CampaignTokens
    /// Type of the notification.
    public var pushType = PushType.alert
    /// Priority; nil: the default of the type.
    public var priority: Priority?
    /// Time until which APNs keeps the notification for an unavailable device; nil: Apple's
    /// default.
    public var expiration: Expiration?
    /// Identifier with which a later notification replaces this one on a device; nil: none.
    public var collapseID: String?
    /// Name in logs and reports; nil: none.
    public var name: String?
    /// The labels in logs and reports, by key.
    public var labels: [String: String] = [:]

    /// Creates a campaign for an app; all other properties have their defaults.
    public init(
        topic: String, credential: APNsCredential, payload: Payload, tokens: CampaignTokens
    ) {
        self.topic = topic
        self.credential = credential
        self.payload = payload
        self.tokens = tokens
    }

    /// Options of `broadside send` for the same campaign.
    func sendOptions(
        ledger: URL, _ choices: RunOptions
    ) throws(BroadsideError) -> SendOptions {
        var options = SendOptions()
        options.topic = topic
        try credential.apply(to: &options)
        switch payload {
        case .json(let data): options.payloadBytes = [UInt8](data)
        case .file(let file): options.payload = try path(file, of: "payload")
        }
        switch tokens.source {
        case .file(let file): options.tokens = .file(try path(file, of: "tokens"))
        case .device(let token): options.tokens = .single(token)
        case .sequence:
            // The run gets the rows as if they came from standard input, and copies them into the
            // ledger.
            options.tokens = .file("-")
            options.format = .jsonl
        }
        options.pushType = pushType
        options.priority = priority
        options.expiration = expiration
        options.collapseID = collapseID
        options.name = name
        options.labels = labels
        options.ledger = try path(ledger, of: "ledger")
        options.progress = .none
        try choices.apply(to: &options)
        for (option, isSet) in [
            ("dry-run", options.isDryRun), ("preview", options.preview != nil),
        ] where isSet {
            throw .usage(option, "prints to standard output, so only the command has it")
        }
        if options.summary == "-" {
            throw .usage("summary", "-: standard output belongs to the program: name a file")
        }
        if options.progress == .auto {
            throw .usage(
                "progress",
                "auto: the terminal belongs to the program: choose none, or json for the log")
        }
        return options
    }
}
