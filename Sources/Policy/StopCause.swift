public import BroadsideAPNs

/// Why a run ended, decided where it happens and kept with the ledger (`StopRecord`). What to do
/// about each is one table, `StopAdvice`.
public enum StopCause: Sendable, Hashable {
    /// The list came to its end.
    case complete
    /// A signal: responses in flight are awaited.
    case signal
    /// The operator's word on the control socket: as a signal.
    case control
    /// `--deadline` has passed.
    case deadline
    /// No address will ever do.
    case gaveUp(ConnectionTrouble)
    /// No response came for `--give-up-after`; what went wrong with connections last.
    case noResponse(seconds: UInt64, last: ConnectionTrouble?)
    /// Connections ended by the server's protocol errors, one after the other.
    case brokenServer(ConnectionTrouble)
    /// APNs refuses the request or the credential: `--abort-after` in a row, or a connection as such.
    case refused(Refusal)
    /// The list came to its end, but so many rows were refused because of the credential.
    case heldBack(rows: UInt64, Refusal?)
    /// The first responses were all BadDeviceToken or DeviceTokenNotForTopic.
    case onlyBadTokens(Refusal)
    /// The list of a part came to its end, and each of these rows that were sent was refused; why the last
    /// one was, if that is known.
    case allRefused(rows: UInt64, Refusal?)
    /// More than `--max-bad-tokens` of the last 10,000 responses are BadDeviceToken.
    case tooManyBadTokens
    /// Topics that rows name were refused, as the text says; the others were sent.
    case topicsRefused(detail: String, Refusal?)
    /// More than `--max-invalid` of the rows read so far are invalid.
    case tooManyInvalid(count: UInt64, rows: UInt64)
    /// More than `--canary-max-rejected` of the canary's responses refuse.
    case canaryRefused(count: UInt64, answered: UInt64)
    /// With the rows of the canary that were not answered, more than `--canary-max-rejected` of them are
    /// no success, or none was answered.
    case canaryWithoutResponses
    /// APNs calls a provider token expired that cannot be renewed.
    case expiredToken(isSupplied: Bool)
    /// The signing key does not sign any more.
    case signingFailed
    /// The ledger failed: what was recorded stays true.
    case ledgerFailed(detail: String)
    /// The ledger is not under its name any more: removed, or moved away.
    case ledgerGone
    /// A newer attempt has claimed the ledger: nothing more is reserved or recorded.
    case superseded
    /// The list cannot be read further: responses in flight are awaited, and the ledger is whole.
    case listFailed(detail: String)
    /// From a place in the list on nobody knows where its rows begin: a quote that is not closed, a
    /// carriage return. What comes before it is sent.
    case listFaulty(detail: String)
    /// The list changed while it was read.
    case listChanged(detail: String)
    /// A reactor could not continue.
    case failed(detail: String)

    /// A response that refuses a request or a credential as such.
    public struct Refusal: Sendable, Hashable {
        /// 0: a GOAWAY that names the reason.
        public var status: UInt16
        /// nil: none that this version knows.
        public var reason: Reason?
        /// The credential is refused; false: the request.
        public var isCredential: Bool

        /// A response's status and reason, and what it refuses.
        public init(status: UInt16, reason: Reason?, isCredential: Bool) {
            self.status = status
            self.reason = reason
            self.isCredential = isCredential
        }

        /// `403 InvalidProviderToken`; a reason alone where it came with a GOAWAY.
        public var text: String {
            let other =
                status == LengthRequired.status
                ? LengthRequired.reason : "without a known reason"
            let words = reason?.text ?? other.description
            return status == 0 ? words : "\(status) \(words)"
        }
    }

    /// Whether APNs, or a guard, found the campaign as a whole wrong, or its list: exit code 4.
    public var isAbort: Bool {
        switch self {
        case .refused, .heldBack, .onlyBadTokens, .allRefused, .tooManyBadTokens, .topicsRefused,
            .tooManyInvalid, .canaryRefused, .expiredToken, .signingFailed, .listFaulty:
            true
        case .complete, .signal, .control, .deadline, .gaveUp, .noResponse, .brokenServer,
            .canaryWithoutResponses, .ledgerFailed, .ledgerGone, .superseded, .listFailed,
            .listChanged,
            .failed:
            false
        }
    }

    /// Whether nothing could be reached, or no response came: exit code 1 or 3.
    public var isGivingUp: Bool {
        switch self {
        case .gaveUp, .noResponse, .brokenServer, .canaryWithoutResponses, .failed: true
        default: false
        }
    }
}

/// What went wrong with connections last.
public struct ConnectionTrouble: Sendable, Hashable {
    /// In which step.
    public enum Kind: String, Sendable, CaseIterable {
        /// The name has no address.
        case resolve
        /// No TCP connection.
        case connect
        /// The proxy opens no tunnel.
        case proxy
        /// No TLS session.
        case tls
        /// The server broke the protocol, or has not begun it.
        case `protocol`
        /// The server is silent, or takes no bytes.
        case silent
        /// A connection that stood was lost.
        case lost
        /// The server ended the connection with an error or a reason.
        case refused
        /// The server asks for a longer wait than `--give-up-after`.
        case longWait = "long-wait"
        /// TooManyProviderTokenUpdates for too long.
        case tokenUpdates = "token-updates"
        /// None of these.
        case other
    }

    /// In which step it happened.
    public var kind: Kind
    /// Who is at the connection's other end; nil if `problem` names it, or there is nobody.
    public var peer: String?
    /// One line without the peer.
    public var problem: String

    /// Trouble in a step, with whom, and one line about it.
    public init(_ kind: Kind, with peer: String? = nil, _ problem: String) {
        self.kind = kind
        self.peer = peer
        self.problem = problem
    }

    /// One line that names the peer and what happened.
    public var message: String { peer.map { "\($0): \(problem)" } ?? problem }
}
