/// Options of a client.
public struct ClientOptions: Sendable {
    /// Server that notifications go to.
    public var server: APNsServer
    /// Proxy through which the server is reached; nil: it is reached directly.
    public var proxy: APNsProxy?
    /// Maximum number of connections. A further connection is opened only if all streams of the
    /// others are in use.
    public var connectionsLimit = 4
    /// Maximum number of pushes that wait for a response; further pushes fail with
    /// `CampaignError.Code.busy`.
    public var pushesLimit = 10_000
    /// Time limit for sending a push, and then for its response. A push that was not sent by then
    /// fails with `CampaignError.Code.unavailable`; a response that is missing by then is lost.
    public var timeout = Duration.seconds(30)
    /// Receives warnings; nil: they are dropped.
    public var logger: (any RunLogger)?

    /// Creates options for a server; all other options have their defaults.
    public init(server: APNsServer = .production) { self.server = server }
}
