public import BroadsideAPNs
internal import BroadsideSupport

/// Reason for the end of a run, decided where it occurs and stored with the ledger (`StopRecord`).
/// `StopAdvice` has the advice for each.
public enum StopCause: Sendable, Hashable {
    /// The list ended.
    case complete
    /// A signal arrived. The run ends when the requests in flight have their responses.
    case signal
    /// The operator's command on the control socket; like a signal.
    case control
    /// The key `q` at the run's terminal; like a signal.
    case keyboard
    /// `--deadline` has passed.
    case deadline
    /// No address can ever be used.
    case gaveUp(ConnectionTrouble)
    /// No response came within `--give-up-after`. `last` is the latest connection trouble.
    case noResponse(seconds: UInt64, last: ConnectionTrouble?)
    /// The server's protocol errors ended one connection after another.
    case brokenServer(ConnectionTrouble)
    /// APNs refuses the request or the credential: `--abort-after` times in a row, or on a whole
    /// connection.
    case refused(Refusal)
    /// The list ended, but this many rows were refused because of the credential, or by a server
    /// that is not APNs.
    case heldBack(rows: UInt64, Refusal?)
    /// The first responses were all BadDeviceToken or DeviceTokenNotForTopic.
    case onlyBadTokens(Refusal)
    /// The list of a part ended, and all rows of the part that were sent were refused. Has the last
    /// refusal, if it is known.
    case allRefused(rows: UInt64, Refusal?)
    /// More than `--max-bad-tokens` percent of the last 10,000 responses are BadDeviceToken.
    case tooManyBadTokens
    /// Some of the topics that rows name were refused; `detail` says which. Rows of other topics
    /// were sent.
    case topicsRefused(detail: String, Refusal?)
    /// More than `--max-invalid` percent of the rows read so far are invalid.
    case tooManyInvalid(count: UInt64, rows: UInt64)
    /// More than `--canary-max-rejected` percent of the canary's responses are refusals.
    case canaryRefused(count: UInt64, answered: UInt64)
    /// More than `--canary-max-rejected` percent of the canary's rows were refused or had no
    /// response, or none of its rows had a response.
    case canaryWithoutResponses
    /// APNs reports the provider token as expired, and the run can't renew it.
    case expiredToken(isSupplied: Bool)
    /// The signing key can no longer sign.
    case signingFailed
    /// The ledger failed: records so far stay valid.
    case ledgerFailed(detail: String)
    /// The ledger was removed or renamed.
    case ledgerGone
    /// A newer attempt has claimed the ledger. This run reserves and records nothing more.
    case superseded
    /// The list cannot be read further. The run ends when the requests in flight have their
    /// responses, and the ledger is complete.
    case listFailed(detail: String)
    /// Because of an unclosed quote or a carriage return, it is unknown where rows begin after some
    /// offset in the list. The rows before that offset are sent.
    case listFaulty(detail: String)
    /// The list changed while it was read.
    case listChanged(detail: String)
    /// A reactor could not continue.
    case failed(detail: String)

    /// A response that refuses a request or a credential, not only a device token.
    public struct Refusal: Sendable, Hashable {
        /// HTTP status; 0: a GOAWAY that names the reason.
        public var status: UInt16
        /// Reason; nil if the response has none, or one that this version does not know.
        public var reason: Reason?
        /// Text of a reason that this version does not know, as the server sent it; nil if there is
        /// none.
        public var unknownReason: String?
        /// True if the credential is refused, or the server is not APNs; false if the request is
        /// refused.
        public var isCredential: Bool

        /// Creates a refusal from a response.
        public init(status: UInt16, reason: Reason?, isCredential: Bool) {
            self.status = status
            self.reason = reason
            self.isCredential = isCredential
        }

        /// Whether the refusal came from a server that is not APNs. APNs states a reason for each
        /// refusal of a credential, in a response of 403 or in a GOAWAY. New reasons appear, so a
        /// 403 with an unknown reason may be from APNs.
        public var isFromOtherServer: Bool {
            isCredential && reason == nil && status != 0
                && !(status == 403 && unknownReason != nil)
        }

        /// The reason as the server sent it, known or not; nil if there is none.
        public var reasonText: String? { reason?.text ?? unknownReason }

        /// Text such as `403 InvalidProviderToken`; only the reason if it came with a GOAWAY.
        public var text: String {
            let other =
                status == LengthRequired.status
                ? LengthRequired.reason : "without a known reason"
            let words =
                reason?.text ?? unknownReason.map { printable($0, limit: 64) }
                ?? other.description
            return status == 0 ? words : "\(status) \(words)"
        }
    }

    /// Whether the cause is that the whole campaign or its list is wrong, according to APNs or a
    /// guard. The exit code is 4.
    public var isAbort: Bool {
        switch self {
        case .refused, .heldBack, .onlyBadTokens, .allRefused, .tooManyBadTokens, .topicsRefused,
            .tooManyInvalid, .canaryRefused, .expiredToken, .signingFailed, .listFaulty:
            true
        case .complete, .signal, .control, .keyboard, .deadline, .gaveUp, .noResponse,
            .brokenServer, .canaryWithoutResponses, .ledgerFailed, .ledgerGone, .superseded,
            .listFailed,
            .listChanged,
            .failed:
            false
        }
    }

    /// Whether the operator, or a deadline of the operator, ended the run.
    public var isInterruption: Bool {
        switch self {
        case .signal, .control, .keyboard, .deadline: true
        default: false
        }
    }

    /// Whether the run gave up: it could reach no server, or it got no response. The exit code is 1
    /// or 3.
    public var isGivingUp: Bool {
        switch self {
        case .gaveUp, .noResponse, .brokenServer, .canaryWithoutResponses, .failed: true
        default: false
        }
    }
}

/// A problem with a connection.
public struct ConnectionTrouble: Sendable, Hashable {
    /// A step in which a connection failed.
    public enum Kind: String, Sendable, CaseIterable {
        /// The name has no address.
        case resolve
        /// The TCP connection failed.
        case connect
        /// The proxy refused a tunnel.
        case proxy
        /// The TLS session failed.
        case tls
        /// The server violated the protocol, or never began to use it.
        case `protocol`
        /// The server is silent, or accepts no bytes.
        case silent
        /// An established connection was lost.
        case lost
        /// The server ended the connection with an error or a reason.
        case refused
        /// The server requests a longer delay than `--give-up-after`.
        case longWait = "long-wait"
        /// The server responded with TooManyProviderTokenUpdates for too long.
        case tokenUpdates = "token-updates"
        /// Any other problem.
        case other
    }

    /// The step in which the connection failed.
    public var kind: Kind
    /// Peer of the connection; nil if `problem` names it, or there is none.
    public var peer: String?
    /// Description in one line, without the peer.
    public var problem: String

    /// Creates a problem from its step, peer and description.
    public init(_ kind: Kind, with peer: String? = nil, _ problem: String) {
        self.kind = kind
        self.peer = peer
        self.problem = problem
    }

    /// Whether the server did not select HTTP/2 in its handshake (ALPN).
    public var isWithoutHTTP2: Bool { kind == .tls && problem.contains("ALPN") }

    /// Description in one line, with the peer.
    public var message: String { peer.map { "\($0): \(problem)" } ?? problem }
}
