/// Bottleneck of a connection. If several apply at a moment, the one that is declared first counts.
package enum Bottleneck: Int, CaseIterable, Sendable {
    // In order of precedence. The raw values are stored with telemetry and must not change.

    /// No row is ready: the list is read too slowly, or has few rows.
    case input = 0
    /// The rate limit of the run or of the connection.
    case rate = 1
    /// Looking up the name, connecting, or the handshake, up to the server's SETTINGS.
    case connecting = 7
    /// Backoff of the connection or of its rows, or the wait for a new provider token.
    case retry = 2
    /// As many requests are in flight as the server or a limit of the run allows.
    case streams = 3
    /// The server's flow-control windows have no room for a payload.
    case window = 4
    /// The network, or the disk of the ledger, takes no more data.
    case socket = 5
    /// The reactor is busy: nothing else delays requests.
    case cpu = 6

    /// Name of the bottleneck in the summary.
    package var name: String {
        switch self {
        case .input: "input"
        case .rate: "rate"
        case .connecting: "connecting"
        case .retry: "retry"
        case .streams: "streams"
        case .window: "window"
        case .socket: "socket"
        case .cpu: "cpu"
        }
    }
}
