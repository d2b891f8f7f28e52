import BroadsideAPNs
import BroadsidePolicy
import BroadsideSupport

/// What a reactor has to tell its run: collected while it takes completions in and decides, handed
/// over as one value.
struct ReactorEffects: Sendable {
    /// Something that counts in its order.
    enum Signal: Sendable {
        /// So many rows were accepted, one after the other.
        case accepted(Int)
        /// A response refused, or something else came of a request.
        case response(ResponseClass.CampaignSignal, status: UInt16, reason: Reason?)
        /// A response is TooManyProviderTokenUpdates, to a token of that version; the run gives up where
        /// it hears nothing else for the time that takes, and so many nanoseconds more.
        case updatesRefused(usedVersion: UInt32, giveUpAfter: UInt64)
        /// A server calls a token of that version expired, on one of the run's connections.
        case expired(usedVersion: UInt32, connection: UInt64)
        /// A connection ended by its server's protocol error.
        indirect case broken(ConnectionTrouble)
        /// A connection, or an attempt at one, went wrong.
        indirect case trouble(ConnectionTrouble)
        /// The run has to stop.
        indirect case stop(StopCause)
        /// So long no response came although some are awaited: the run has to stop.
        case noResponse(seconds: UInt64)
        /// No address can be reached: the run has to stop.
        case unreachable
    }

    /// What the canary is told: rows since the last time.
    struct CanaryProgress: Sendable, Equatable {
        var done: UInt64 = 0
        var answered: UInt64 = 0
        var refused: UInt64 = 0
        var lost: UInt64 = 0
    }

    private(set) var signals: [Signal] = []
    /// A connection stands ready to send.
    var isReady = false
    /// When a response came last, monotonic nanoseconds; 0: none did.
    var lastResponse: UInt64 = 0
    /// No further rows of the list are to be had.
    var isListOver = false
    /// The reactor began to take a share of the rate (1), or ended it (-1).
    var rateChange = 0
    /// The provider token's age is to be looked at.
    var checksTokenAge = false
    var canary: CanaryProgress?

    /// With so many signals they are handed over, whatever else there is to do.
    static let signalsLimit = 1024

    var isFull: Bool { signals.count >= Self.signalsLimit }

    var isEmpty: Bool {
        signals.isEmpty && !isReady && lastResponse == 0 && !isListOver && rateChange == 0
            && !checksTokenAge && canary == nil
    }

    mutating func append(_ signal: Signal) { signals.append(signal) }

    /// Begins anew, in the same memory.
    mutating func removeAll() {
        signals.removeAll(keepingCapacity: true)
        isReady = false
        lastResponse = 0
        isListOver = false
        rateChange = 0
        checksTokenAge = false
        canary = nil
    }
}
