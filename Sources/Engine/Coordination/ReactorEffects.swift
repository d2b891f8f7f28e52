import BroadsideAPNs
import BroadsidePolicy
import BroadsideSupport

/// The effects of a reactor on its run. They are collected during an iteration and handed over as
/// one value.
struct ReactorEffects: Sendable {
    /// An effect whose position among the other effects matters.
    enum Signal: Sendable {
        /// Number of consecutive accepted rows.
        case accepted(Int)
        /// Number of consecutive accepted rows of one topic, if rows name their topics. They also
        /// count as `accepted`.
        case topicAccepted(Int, topic: UInt8)
        /// Like `response`, for a row that names its topic.
        case topicResponse(
            ResponseClass.CampaignSignal, status: UInt16, reason: Reason?,
            unknownReason: UInt8 = 0, topic: UInt8)
        /// A response that no other case describes. `unknownReason` is a number of
        /// `UnknownReasons`; 0: none.
        case response(
            ResponseClass.CampaignSignal, status: UInt16, reason: Reason?,
            unknownReason: UInt8 = 0)
        /// An error packet of a legacy gateway about a row that was already counted as accepted.
        /// `isFirst`: it is about the first row of its connection.
        case lateRefusal(
            ResponseClass.CampaignSignal, status: UInt16, reason: Reason?, isFirst: Bool)
        /// TooManyProviderTokenUpdates for the token of this version. Renewal of the token is then
        /// frozen. The run gives up if no other response arrives during the freeze or in the
        /// `giveUpAfter` nanoseconds after it.
        case updatesRefused(usedVersion: UInt32, giveUpAfter: UInt64)
        /// ExpiredProviderToken for the token of this version, on this connection.
        case expired(usedVersion: UInt32, connection: UInt64)
        /// A protocol error of the server ended a connection.
        indirect case broken(ConnectionTrouble)
        /// A connection, or an attempt at one, failed.
        indirect case trouble(ConnectionTrouble)
        /// The run has to stop.
        indirect case stop(StopCause)
        /// No response came for this long although requests were in flight: the run has to stop.
        case noResponse(seconds: UInt64)
        /// No address can be reached: the run has to stop.
        case unreachable
    }

    /// The results of the canary's rows since the last report.
    struct CanaryProgress: Sendable, Equatable {
        var done: UInt64 = 0
        var answered: UInt64 = 0
        var refused: UInt64 = 0
        var lost: UInt64 = 0
        var postponed: UInt64 = 0
    }

    private(set) var signals: [Signal] = []
    /// Whether a connection became ready to send.
    var isReady = false
    /// Time of the last response, monotonic nanoseconds; 0: none.
    var lastResponse: UInt64 = 0
    /// Whether the list has no further rows.
    var isListOver = false
    /// 1 if the reactor joined the reactors that share the rate, -1 if it left them, 0 otherwise.
    var rateChange = 0
    /// Time of the last requests, monotonic nanoseconds; 0: none. A rate ramp advances up to this
    /// time. Handed over when the next iteration begins.
    var lastSent: UInt64 = 0
    /// Whether the provider token's age has to be checked.
    var checksTokenAge = false
    var canary: CanaryProgress?

    /// Limit on signals. When it is reached, the signals are handed over at once.
    static let signalsLimit = 1024

    var isFull: Bool { signals.count >= Self.signalsLimit }

    var isEmpty: Bool {
        signals.isEmpty && !isReady && lastResponse == 0 && !isListOver && rateChange == 0
            && !checksTokenAge && canary == nil
    }

    mutating func append(_ signal: Signal) { signals.append(signal) }

    /// Clears all effects and keeps the memory.
    mutating func removeAll() {
        signals.removeAll(keepingCapacity: true)
        isReady = false
        lastResponse = 0
        isListOver = false
        rateChange = 0
        lastSent = 0
        checksTokenAge = false
        canary = nil
    }
}
