public import BroadsideAPNs
import BroadsideEngine
public import BroadsideHPACK
public import BroadsideLedgerFormat
public import BroadsideLegacyGateway
public import BroadsideLists
public import BroadsideObservability
public import BroadsideRows
import BroadsideSupport
package import BroadsideTLS

/// Options of one send: values that are parsed but not yet checked against each other or against
/// files.
public struct SendOptions: Sendable {
    /// Whether payloads are checked against Apple's rules before they are sent.
    public enum PayloadCheckMode: String, Sendable, CaseIterable {
        /// If `payload check` finds an error, the run does not begin.
        case error
        /// Payloads are sent without the check.
        case off
    }

    /// The use of the ledger's directory.
    public enum LedgerUse: String, Sendable, CaseIterable {
        /// Begins a campaign. The directory must not exist.
        case begin
        /// Continues the campaign in the directory. Without a ledger nothing is sent.
        case resume
        /// Like `resume`, but begins a campaign if the directory does not exist or is empty.
        ///
        /// If the ledger was lost, the whole campaign is therefore sent again.
        case resumeOrBegin
    }

    /// A token list, or a single device.
    public var tokens: TokenSource?
    /// Format of the list; nil: detected from its name and first bytes.
    public var format: TokenListFormat?
    /// Column of the tokens; nil: `token`.
    public var tokenColumn: String?
    /// File of the payload.
    public var payload: String?
    /// `COLUMN=DIR`: one payload file per value of a column.
    public var payloadBy: String?
    /// The payload itself, instead of a file. It is a template and is checked, like a file.
    public var payloadBytes: [UInt8]?
    /// Whether payloads are checked against Apple's rules.
    public var payloadCheck = PayloadCheckMode.error
    /// Value of apns-topic.
    public var topic: String?
    /// Value of apns-push-type.
    public var pushType = PushType.alert
    /// Value of apns-priority; nil: the default of the push type.
    public var priority: Priority?
    /// Value of apns-expiration; nil: not sent.
    public var expiration: Expiration?
    /// Value of apns-collapse-id; nil: not sent.
    public var collapseID: String?

    /// Path of a `.p8` file, which needs `keyID` and `teamID`; `env:NAME`, an environment variable
    /// that contains the key's text; or `pkcs11:URI`, a key in a PKCS#11 token.
    public var authKey: String?
    /// Command for `sh -c` that prints the key.
    public var authKeyCommand: String?
    /// ID of the key, 10 characters.
    public var keyID: String?
    /// ID of the team, 10 characters.
    public var teamID: String?
    /// File of a provider token that another program makes; read again when it changes.
    public var authTokenFile: String?
    /// Command for `sh -c` that prints a provider token; run again when the token gets old.
    public var authTokenCommand: String?
    /// Client certificate: PEM or PKCS#12.
    public var certificate: String?
    /// Private key of the certificate, PEM; nil: in the certificate's file.
    public var privateKey: String?
    /// File whose first line is the passphrase of a protected key.
    public var passphraseFile: String?

    /// Environment of APNs: production or sandbox. If this is set, an `endpoint` that is Apple's
    /// host for the other environment is an error.
    public var environment: Endpoints.Environment {
        get { chosenEnvironment ?? .production }
        set { chosenEnvironment = newValue }
    }
    /// Environment that was set; nil: the default, or that of the endpoint.
    private(set) var chosenEnvironment: Endpoints.Environment?
    /// Port to connect to, unless the endpoint names one; nil: the protocol's default.
    public var port: UInt16?
    /// `HOST[:PORT]` of a server to use instead of Apple's.
    public var endpoint: String?
    /// Certificates to trust instead of the system's.
    public var caFile: String?
    /// Whether requests have a content-length header.
    public var sendsContentLength = false
    /// `http://HOST:PORT` of a proxy.
    public var proxy: String?
    /// File whose first line is the proxy's `user:password`.
    public var proxyAuthFile: String?

    /// Provider API or legacy gateway.
    public var wireProtocol = WireProtocol.http2
    /// The frame format for a legacy gateway.
    public var binaryCommand = BinaryCommand.frame

    /// Total number of connections; nil: chosen by the run.
    public var connections: Int?
    /// Streams per connection; nil: the server's limit.
    public var maxStreams: Int?
    /// Number of reactors; nil: chosen by the run.
    public var reactors: Int?
    /// Requests per second, constant or rising; nil: unlimited.
    public var rate: SendRate?
    /// Requests per second and connection; nil: unlimited.
    public var ratePerConnection: Double?
    /// Whether fewer requests are in flight when latency rises under load.
    public var pace = PaceMode.adaptive

    /// Indexing policy of request headers.
    public var headerIndexing = IndexingPolicy.strict

    /// Number of requests for a row before it may become `failed`.
    public var maxAttempts = 5
    /// Time for which a row is retried before it may become `failed`. Like all durations in
    /// `SendOptions`, it is in nanoseconds.
    public var retryFor: UInt64 = 1800 * second
    /// Handling of rows whose response was lost.
    public var onLost = LostResponsePolicy.record
    /// Maximum time from a request to its response, in nanoseconds.
    public var requestTimeout: UInt64 = 30 * second
    /// Time without any response, in nanoseconds, after which the run stops; nil:
    /// `defaultGiveUpAfter`.
    public var giveUpAfter: UInt64?
    /// Number of consecutive refusals that stops the run.
    public var abortAfter = 50
    /// Limit on BadDeviceToken among the last 10,000 responses, percent.
    public var maxBadTokens = 50.0
    /// Limit on invalid rows among those read so far, percent; 100: unlimited.
    public var maxInvalid = defaultMaxInvalid
    /// Number of rows in the canary. Other rows are sent only after the responses to these rows.
    /// nil: no canary.
    public var canary: Int?
    /// Limit on refused rows in the canary, percent.
    public var canaryMaxRejected = 20.0
    /// Whether the canary of another part of the campaign has passed. If so, this part needs no
    /// canary.
    public var assumesCanary = false
    /// Time after the first start, in nanoseconds, at which the run stops sending requests; nil:
    /// none.
    public var deadline: UInt64?

    /// Maximum number of rows, counted from the first row of the list or the shard; nil: all rows.
    public var limit: UInt64?
    /// Shard of the list; nil: the whole list.
    public var shard: ListShard?
    /// Part of the campaign that this list contains; nil if the campaign has only one list.
    public var part: CampaignPart?
    /// ID of the campaign, shared by all its parts; nil: random.
    public var campaignID: UInt64?
    /// The rules that exclude rows by their own columns.
    public var rules = RowRules()
    /// Rule that puts devices into arms; nil: no arms.
    public var split: ArmSplit?
    /// Arms with options of their own.
    public var arms: [ArmOptions] = []
    /// Suppression list; nil: none.
    public var suppress: String?
    /// Whether duplicates of a token are skipped.
    public var skipsDuplicates = false
    /// Whether the user asked to send duplicates of a token. If not, duplicates cause a warning.
    public var sendsDuplicates = false
    /// Directories of ledgers that report dead tokens. Rows with these tokens are skipped. nil: not
    /// requested; empty: requested without directories.
    public var skipDead: [String]?
    /// Whether the other ledgers in a night's own folder report dead tokens, too. On a campaign's
    /// first night, there are none. If one of them is unreadable, this only causes a warning.
    public var skipsOwnDead = false
    /// Column with the time of a token's registration. Reports from before that time are ignored.
    /// Times without an offset are read as UTC. nil: `deadFor` limits the age of reports.
    public var registeredColumn: String?
    /// Maximum age of a report of a dead token, in nanoseconds; nil: `defaultDeadFor`. Older
    /// reports are ignored.
    public var deadFor: UInt64?
    /// Limit on notifications per device within a time; nil: unlimited.
    public var cap: FrequencyCap?
    /// Directories of ledgers in which notifications per device are counted.
    public var history: [String] = []
    /// Delivery times of rows, by time zone; by default, all rows are sent at once.
    public var delivery = DeliveryOptions()
    /// Whether the ledger stores tokens and their fingerprints.
    public var keepsTokens = true
    /// Whether everything is only checked. If so, the run opens no connection and writes no output
    /// file.
    public var isDryRun = false
    /// Number of requests per payload that are printed and not sent; nil: no preview.
    public var preview: Int?
    /// Whether to skip the confirmation before sending to Apple's production.
    public var isConfirmed = false
    /// Directory of the ledger.
    public var ledger: String?
    /// Whether to continue the ledger's campaign or to begin one.
    public var ledgerUse = LedgerUse.begin
    /// The states that a resume reopens: `failed`, `unknown` or both.
    public var retry: ReopenedStates = []
    /// Path of the summary; `-`: standard output.
    public var summary: String?
    /// The display during the run.
    public var progress = ProgressMode.auto
    /// Format of the log. If nil and `progress` is `.auto`, the log has only important events, as
    /// text. If nil and `progress` has another value, there is no log.
    public var log: EventLogFormat?
    /// Path of the report page.
    public var report: String?
    /// File for Prometheus' textfile collector, or `HOST:PORT` of an endpoint to scrape.
    public var metrics: String?
    /// File of traced frames, one line of JSON per frame.
    public var traceFrames: String?
    /// Display name of the campaign; nil: none.
    public var name: String?
    /// The labels of the campaign by key, included in metrics, log and summary.
    public var labels: [String: String] = [:]
    /// Command line with these options; nil if a program sets them.
    public var command: RunCommand?
    /// Path of the control socket.
    public var control: String?
    /// Command for `sh -c` that is called at each event of a run, such as its start and its end. It
    /// reads the event from its standard input.
    public var hook: String?
    /// Folder of the ledgers of a nightly campaign; it is empty on the first night. nil: not a
    /// nightly campaign.
    var nightFolder: String?
    /// Length of a night, nanoseconds; nil if the run is not a night.
    var nightLength: UInt64?
    /// Writes the notes about this run's night; nil if the run is not a night.
    var night: NightRecord?
    /// Program that runs the campaign through the library; nil for the command.
    package var host: RunHost?
    /// Signing key that the program supplies; nil: the key is read from its source.
    package var heldKey: SigningKey?
    /// Whether the notification is that of `broadside probe`, whose push type can't be chosen.
    package var isProbe = false

    /// Creates options with the documented defaults.
    public init() {}

    /// Default of `--max-invalid`.
    public static let defaultMaxInvalid = 10.0

    /// Limit on the requests per payload that a preview shows.
    public static var previewLimit: Int { 1_000 }

    /// Whether an existing ledger may be continued.
    var resumes: Bool { ledgerUse != .begin }

    /// Absolute path of the list, in which links are not resolved; nil if the list is not a file.
    var givenListPath: String? {
        guard case .file(let path) = tokens, path != ListBytes.standardInput else { return nil }
        return normalizedPath(path)
    }

    /// Whether the run is a dry run or a preview. If so, it opens no connection and writes no file.
    public var opensNoConnection: Bool { isDryRun || preview != nil }

    /// Limit on the length of `--name`, bytes.
    public static var nameByteLimit: Int { 200 }

    /// Default of `--give-up-after`.
    public static var defaultGiveUpAfter: UInt64 { 60 * second }
}
