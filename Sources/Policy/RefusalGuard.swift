public import BroadsideAPNs
import BroadsidePrimitives

/// Stops a campaign that APNs refuses as such, before it has spent its tokens on it.
///
///     watching ──N refusals in a row──▶ aborted(refusedInARow)
///       │ first N answers, all BadDeviceToken or DeviceTokenNotForTopic ──▶ aborted(onlyBadTokens)
///       │ more than P percent BadDeviceToken in the last 10,000 ──▶ aborted(tooManyBadTokens)
///       └─ first 200: requests in flight are no longer limited to N
///
/// A response after which its row is sent again (429, 5xx) neither counts for `--abort-after` nor interrupts
/// what counts: it says nothing of the campaign, and a server that is busy now and then would switch the
/// guard off. Until the first 200 nor does one about a token: a dead one here and there does not show that
/// anybody can be reached.
public struct RefusalGuard: ~Copyable {
    /// Why a campaign stops.
    public enum Cause: Sendable, Equatable {
        /// `--abort-after`: so many answers in a row refused the request or the credential.
        case refusedInARow
        /// `--abort-after`: the first answers were all BadDeviceToken or DeviceTokenNotForTopic,
        /// which is what a wrong environment or topic looks like.
        case onlyBadTokens
        /// `--max-bad-tokens`: too many BadDeviceToken among the last 10,000 answers.
        case tooManyBadTokens
    }

    /// How many answers `--max-bad-tokens` looks back on.
    static var windowCount: Int { 10_000 }

    /// `--abort-after`; 0 switches it off.
    public let abortAfter: Int
    /// The most BadDeviceToken there may be among the last 10,000 answers.
    let maximumBadTokens: Int
    /// Whether this process had a notification accepted. What earlier ones had accepted shows nothing: a
    /// resume may have another credential or endpoint.
    private(set) var hasAccepted = false
    /// Whether first responses that are all BadDeviceToken count: not if the canary of another part
    /// has passed. A wrong topic is this part's own mistake, and counts always.
    let judgesFirst: Bool
    /// Why the campaign stops; nil while it goes on.
    private(set) var cause: Cause?

    private(set) var answerCount = 0
    private(set) var refusedInARow = 0
    private(set) var isAllBadTokens = true
    /// Responses that count as such, up to the first that does not.
    private(set) var firstBadTokens = 0
    private(set) var badTokenCount = 0
    private var windowPosition = 0
    /// One byte for each of the last answers: 1 for BadDeviceToken.
    private var window: FixedBuffer<UInt8>

    /// - Parameters:
    ///   - maximumBadTokensPercent: `--max-bad-tokens`, 0 to 100.
    ///   - judgesFirst: whether BadDeviceToken among the first responses counts: not if the canary of
    ///     another of the campaign's parts has passed.
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

    /// Refusals that count towards `--abort-after` now: so many fewer requests are worth having in
    /// flight before the first 200.
    public var refusalCount: Int { max(refusedInARow, isAllBadTokens ? firstBadTokens : 0) }

    /// Takes note of an answer; the cause, from the answer on that stops the campaign.
    public mutating func note(_ signal: ResponseClass.CampaignSignal) -> Cause? {
        answerCount += 1
        noteInWindow(isBad: signal == .badDeviceToken)
        noteRefusal(signal)
        noteFirst(signal)
        if signal == .accepted { hasAccepted = true }
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
        windowPosition += 1
        if windowPosition == RefusalGuard.windowCount { windowPosition = 0 }
    }
}
