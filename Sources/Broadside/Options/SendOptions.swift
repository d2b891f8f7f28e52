public import BroadsideAPNs
import BroadsideEngine
public import BroadsideHPACK
public import BroadsideLedgerFormat
public import BroadsideLegacyGateway
public import BroadsideLists
public import BroadsideObservability
public import BroadsideRows
import BroadsideSupport

/// What one send is asked to do: the values of the command's options, read but not yet checked
/// against each other or against any file.
public struct SendOptions: Sendable {
    /// Where the device tokens come from.
    public typealias Tokens = TokenSource

    /// What is shown while a run is in progress.
    public typealias Progress = ProgressMode
    /// How the event log is written.
    public typealias LogFormat = EventLogFormat

    /// Whether payloads are held against Apple's rules before they are sent.
    public enum PayloadCheckMode: String, Sendable, CaseIterable {
        /// What `payload check` calls an error ends the run before it begins.
        case error
        /// They go out as they are.
        case off
    }

    /// What a run does with the directory of its ledger.
    public enum LedgerUse: String, Sendable, CaseIterable {
        /// A campaign begins. The directory must not exist.
        case begin
        /// The campaign that was begun there continues. Without a ledger nothing is sent.
        case resume
        /// The same, but a campaign begins if the directory does not exist or is empty.
        ///
        /// A ledger that was lost looks the same: then the whole campaign is sent again.
        case resumeOrBegin
    }

    /// Which header fields go into APNs' compression table.
    public typealias HeaderIndexing = IndexingPolicy

    /// The list, or one device.
    public var tokens: Tokens?
    /// nil: as the list's name and first bytes say.
    public var format: TokenListFormat?
    /// nil: `token`.
    public var tokenColumn: String?
    /// The payload's file.
    public var payload: String?
    /// `COLUMN=DIR`: a payload file for each value of a column.
    public var payloadBy: String?
    /// The payload itself, in place of a file.
    public var payloadBytes: [UInt8]?
    /// Whether payloads are held against Apple's rules.
    public var payloadCheck = PayloadCheckMode.error
    /// apns-topic.
    public var topic: String?
    /// apns-push-type.
    public var pushType = PushType.alert
    /// nil: what the push type asks for.
    public var priority: Priority?
    /// apns-expiration; nil: not sent.
    public var expiration: Expiration?
    /// apns-collapse-id; nil: not sent.
    public var collapseID: String?

    /// A `.p8` file, with the two names that Apple gave with it; or `env:NAME`, a variable of the environment
    /// that holds the key's text.
    public var authKey: String?
    /// A command for `sh -c` that prints the key.
    public var authKeyCommand: String?
    /// The key's ID, 10 characters.
    public var keyID: String?
    /// The team's ID, 10 characters.
    public var teamID: String?
    /// A provider token made elsewhere, reread when it changes.
    public var authTokenFile: String?
    /// A command for `sh -c` that prints a provider token, run again when that gets old.
    public var authTokenCommand: String?
    /// A client certificate: PEM or PKCS#12.
    public var certificate: String?
    /// Its private key, PEM; nil: in the certificate's file.
    public var privateKey: String?
    /// The first line opens a protected key.
    public var passphraseFile: String?

    /// Which of Apple's hosts.
    public var environment = Endpoints.Environment.production
    /// The port there.
    public var port: UInt16 = 443
    /// `HOST[:PORT]` of another APNs.
    public var endpoint: String?
    /// Certificates to trust in place of the system's.
    public var caFile: String?
    /// Whether requests have a content-length.
    public var sendsContentLength = false
    /// `http://HOST:PORT` of a proxy.
    public var proxy: String?
    /// The first line is the proxy's `user:password`.
    public var proxyAuthFile: String?

    /// Provider API, or legacy gateway.
    public var wireProtocol = WireProtocol.http2
    /// In which form notifications go to a legacy gateway.
    public var binaryCommand = BinaryCommand.frame

    /// Connections in all; nil: chosen.
    public var connections: Int?
    /// Streams a connection; nil: the server's limit.
    public var maxStreams: Int?
    /// Event-loop threads; nil: chosen.
    public var reactors: Int?
    /// Requests per second, constant or rising; nil: unlimited.
    public var rate: SendRate?
    /// Requests a second a connection; nil: unlimited.
    public var ratePerConnection: Double?
    /// Whether fewer requests are in flight where answers slow down under load.
    public var pace = PaceMode.adaptive

    /// How requests are compressed.
    public var headerIndexing = HeaderIndexing.strict

    /// Requests for a row before it may be `failed`.
    public var maxAttempts = 5
    /// Durations in nanoseconds.
    public var retryFor: UInt64 = 900 * second
    /// What becomes of a row whose answer was lost.
    public var onLost = LostResponsePolicy.record
    /// The longest wait for an answer.
    public var requestTimeout: UInt64 = 30 * second
    /// The longest time without any answer; nil: the default.
    public var giveUpAfter: UInt64?
    /// Refusals in a row that stop the run.
    public var abortAfter = 50
    /// The most BadDeviceToken among the last 10,000 answers, percent.
    public var maxBadTokens = 50.0
    /// The most rows read so far that may be invalid, percent; 100: any number.
    public var maxInvalid = defaultMaxInvalid
    /// Rows whose answers are awaited before any others are sent; nil: none.
    public var canary: Int?
    /// The most of them that may be refused, percent.
    public var canaryMaxRejected = 20.0
    /// The canary of another part of the campaign has passed: this part has none.
    public var assumesCanary = false
    /// From so long after the first start on no request is begun.
    public var deadline: UInt64?

    /// Only the first rows, of the shard where there is one.
    public var limit: UInt64?
    /// Which part of the list; nil: all of it.
    public var shard: ListShard?
    /// Which of the campaign's lists this one is; nil: a campaign of one list.
    public var part: CampaignPart?
    /// The campaign's number, shared by all its parts; nil: random.
    public var campaignID: UInt64?
    /// Which rows get the campaign, by what their columns say; nil: all.
    public var filter: RowFilter?
    /// A list of opt-outs; nil: none.
    public var suppress: String?
    /// Whether later copies of a token are skipped.
    public var skipsDuplicates = false
    /// Directories of ledgers: rows whose token these report as dead are skipped. nil: not asked for; empty:
    /// asked for, but none.
    public var skipDead: [String]?
    /// Whether these directories are a default: they may hold no ledger, or not be there, as on a first night, and a
    /// ledger that can't be read is left out with a warning.
    public var skipDeadIsDefault = false
    /// The column that says when a row's token was registered; nil: `deadFor` decides.
    public var registeredColumn: String?
    /// For how long a report that a token is dead counts, in nanoseconds; nil: `defaultDeadFor`.
    public var deadFor: UInt64?
    /// How often a device may get a notification; nil: any number of times.
    public var cap: FrequencyCap?
    /// Directories of ledgers in which that is counted.
    public var history: [String] = []
    /// Check everything, connect nowhere, write nothing.
    public var isDryRun = false
    /// Requests of each payload that are printed and not sent; nil: no preview.
    public var preview: Int?
    /// Do not ask before Apple's production.
    public var isConfirmed = false
    /// The ledger's directory.
    public var ledger: String?
    /// Whether the ledger's run continues, or one begins.
    public var ledgerUse = LedgerUse.begin
    /// States that a resume opens again: any of `failed`, `unknown`.
    public var retry: ReopenedStates = []
    /// Where the summary goes; `-`: standard output.
    public var summary: String?
    /// What is shown while the run goes on.
    public var progress = Progress.auto
    /// nil: text, and only what matters, where progress is shown.
    public var log: LogFormat?
    /// Where the report page goes.
    public var report: String?
    /// A file for Prometheus' textfile collector, or `HOST:PORT` to be scraped at.
    public var metrics: String?
    /// Where frames are written, a line of JSON each.
    public var traceFrames: String?
    /// What people call the campaign; nil: nothing.
    public var name: String?
    /// The campaign's labels by key, which metrics, log and summary carry.
    public var labels: [String: String] = [:]
    /// The command line that asks for all this; nil where a program does.
    public var command: RunCommand?
    /// Where the control socket is made.
    public var control: String?
    /// A command for `sh -c`, run when the run starts, stops or finishes; the event is on its standard input.
    public var hook: String?
    /// The night that this is the send of; nil: none.
    var night: NightRecord?

    /// The defaults of the contract.
    public init() {}

    /// `--max-invalid` where none is given.
    public static let defaultMaxInvalid = 10.0

    /// The most requests of a payload that a preview shows.
    public static var previewLimit: Int { 1_000 }

    /// Whether a ledger that is there continues.
    var resumes: Bool { ledgerUse != .begin }

    /// Whether nothing is to be connected or written.
    public var opensNoConnection: Bool { isDryRun || preview != nil }

    /// The longest `--name`.
    public static var nameByteLimit: Int { 200 }

    /// `--give-up-after` where none is given.
    public static var defaultGiveUpAfter: UInt64 { 60 * second }
}
