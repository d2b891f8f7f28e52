public import BroadsideAPNs
import BroadsidePrimitives

/// Stops a campaign that APNs refuses as a whole, before the whole list has been sent to no effect.
///
///     watching ──N refusals in a row──▶ aborted(refusedInARow)
///       │ first N responses, all BadDeviceToken or DeviceTokenNotForTopic
///       │     ──▶ aborted(onlyBadTokens)
///       │ more than P percent BadDeviceToken in the last 10,000 ──▶ aborted(tooManyBadTokens)
///       └─ first 200: requests in flight are no longer limited to N
///
/// `--abort-after` ignores responses after which a row is sent again (429, 5xx). Such a response
/// shows nothing about the campaign. If it ended a series of refusals, a server that is busy at
/// times would disable the guard.
///
/// Until the first 200, a response about a token does not end a series of refusals either. A few
/// dead tokens do not show that any device can be reached.
///
/// With a legacy gateway, refusals that come too late form a series of their own (`noteLate`).
public struct RefusalGuard: ~Copyable, Sendable {
    /// Reason for stopping a campaign.
    public enum Cause: Sendable, Equatable {
        /// `--abort-after`: this many consecutive responses refused the request or the credential.
        case refusedInARow
        /// `--abort-after`: the first responses were all BadDeviceToken or DeviceTokenNotForTopic,
        /// which indicates a wrong environment or topic.
        case onlyBadTokens
        /// `--max-bad-tokens`: too many BadDeviceToken among the last 10,000 responses.
        case tooManyBadTokens
    }

    /// Number of responses that `--max-bad-tokens` considers.
    static var windowCount: Int { 10_000 }

    /// `--abort-after`; 0 disables it.
    public let abortAfter: Int
    /// Maximum number of BadDeviceToken among the last 10,000 responses.
    let maximumBadTokens: Int
    /// Whether APNs accepted a notification of this process. Acceptances of earlier processes show
    /// nothing: a resumed run may have a different credential or endpoint.
    private(set) var hasAccepted = false
    /// Whether a BadDeviceToken can count for `onlyBadTokens`. It does not count if the canary of
    /// another part of the campaign has passed. DeviceTokenNotForTopic always counts, because a
    /// wrong topic is this part's own mistake.
    let judgesFirst: Bool
    /// Reason for stopping the campaign; nil while it continues.
    private(set) var cause: Cause?

    private(set) var answerCount = 0
    private(set) var refusedInARow = 0
    private(set) var isAllBadTokens = true
    /// Number of bad tokens before the first response that accepts a row or refuses it for another
    /// reason. Dead tokens and server errors change nothing.
    private(set) var firstBadTokens = 0
    /// Number of consecutive late refusals of the first notification of a connection.
    private(set) var lateRefusals = 0
    private(set) var badTokenCount = 0
    private var windowPosition = 0
    /// One byte for each of the last responses: 1 for BadDeviceToken.
    private var window: FixedBuffer<UInt8>

    /// - Parameters:
    ///   - maximumBadTokensPercent: `--max-bad-tokens`, 0 to 100.
    ///   - judgesFirst: Whether a BadDeviceToken can count for `onlyBadTokens`. False if the canary
    ///     of another part of the campaign has passed.
    public init(
        abortAfter: Int, maximumBadTokensPercent: Double, judgesFirst: Bool = true
    ) {
        precondition(abortAfter >= 0 && maximumBadTokensPercent >= 0)
        self.abortAfter = abortAfter
        let share = min(maximumBadTokensPercent, 100) / 100
        maximumBadTokens = Int((share * Double(RefusalGuard.windowCount)).rounded(.down))
        self.judgesFirst = judgesFirst
        window = FixedBuffer(repeating: 0, count: RefusalGuard.windowCount)
    }

    /// Current number of refusals that count for `--abort-after`. Before the first 200, this number
    /// is subtracted from the limit on requests in flight.
    public var refusalCount: Int { max(refusedInARow, isAllBadTokens ? firstBadTokens : 0) }

    /// Records a response. Returns the cause if this response or an earlier one stops the campaign.
    public mutating func note(_ signal: ResponseClass.CampaignSignal) -> Cause? {
        answerCount += 1
        noteInWindow(isBad: signal == .badDeviceToken)
        noteRefusal(signal)
        noteFirst(signal)
        assert(
            refusedInARow <= answerCount && firstBadTokens <= answerCount,
            "a refusal is a response")
        if signal == .accepted { hasAccepted = true } else { lateRefusals = 0 }
        if cause != nil { return cause }
        if abortAfter > 0, refusedInARow >= abortAfter {
            cause = .refusedInARow
        } else if abortAfter > 0, isAllBadTokens, firstBadTokens >= abortAfter {
            cause = .onlyBadTokens
        } else if answerCount >= RefusalGuard.windowCount, badTokenCount > maximumBadTokens {
            cause = .tooManyBadTokens
        }
        return cause
    }

    /// Records a late refusal: an error packet of a legacy gateway about a notification that counts as
    /// accepted, because the gateway was silent for long enough. Such acceptances end a series of
    /// refusals. So late refusals are also counted on their own, as long as each is about the first
    /// notification of its connection: then the gateway accepted none on that connection.
    public mutating func noteLate(
        _ signal: ResponseClass.CampaignSignal, isFirst: Bool
    ) -> Cause? {
        let earlier = lateRefusals
        let found = note(signal)
        guard isFirst else { return found }
        let refusesAll = signal == .refusesRequest || signal == .refusesCredential
        lateRefusals = earlier + (refusesAll ? 1 : 0)
        assert(lateRefusals <= answerCount, "a refusal is a response")
        if cause == nil, abortAfter > 0, lateRefusals >= abortAfter { cause = .refusedInARow }
        return cause
    }

    private mutating func noteRefusal(_ signal: ResponseClass.CampaignSignal) {
        switch signal {
        case .none, .pauseAddress, .renewProviderToken, .freezeRenewal: break
        case .accepted: refusedInARow = 0
        case .refusesRequest, .refusesCredential: refusedInARow += 1
        case .refusesPayload where !hasAccepted: refusedInARow += 1
        case .refusesPayload, .badDeviceToken, .wrongTopicToken, .deadToken:
            if hasAccepted { refusedInARow = 0 }
        }
    }

    private mutating func noteFirst(_ signal: ResponseClass.CampaignSignal) {
        switch signal {
        case .none, .pauseAddress, .renewProviderToken, .freezeRenewal, .deadToken: break
        case .wrongTopicToken: firstBadTokens += 1
        case .badDeviceToken where judgesFirst: firstBadTokens += 1
        case .badDeviceToken, .accepted, .refusesRequest, .refusesPayload, .refusesCredential:
            isAllBadTokens = false
        }
    }

    private mutating func noteInWindow(isBad: Bool) {
        let new: UInt8 = isBad ? 1 : 0
        let old = window[windowPosition]
        window[windowPosition] = new
        badTokenCount += Int(new) - Int(old)
        assert(
            (0...min(answerCount, RefusalGuard.windowCount)).contains(badTokenCount),
            "bad tokens are counted among the last responses")
        windowPosition += 1
        if windowPosition == RefusalGuard.windowCount { windowPosition = 0 }
    }
}
