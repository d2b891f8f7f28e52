/// What a `RefusalGuard` has counted so far.
public struct RefusalCounts: Sendable, Equatable {
    /// Responses that it saw.
    public var responses: UInt64
    /// Refusals of the request or the credential in a row, now.
    public var consecutiveRefusals: Int
    /// Whether all responses so far were BadDeviceToken or DeviceTokenNotForTopic, but for those that say
    /// nothing of the campaign; nil before the first one, and if that is not judged.
    public var areOnlyBadTokens: Bool?
    /// BadDeviceToken among the last `windowResponses`.
    public var badTokens: Int
    /// The responses that `--max-bad-tokens` looks back on: at most 10,000.
    public var windowResponses: Int

    /// Several guards together: sums, and the longest of the rows of refusals.
    public static func sum(_ all: [RefusalCounts]) -> RefusalCounts {
        RefusalCounts(
            responses: all.reduce(0) { $0 + $1.responses },
            consecutiveRefusals: all.map(\.consecutiveRefusals).max() ?? 0, areOnlyBadTokens: nil,
            badTokens: all.reduce(0) { $0 + $1.badTokens },
            windowResponses: all.reduce(0) { $0 + $1.windowResponses })
    }
}

extension RefusalGuard {
    /// What was counted so far.
    public var counts: RefusalCounts {
        RefusalCounts(
            responses: UInt64(answerCount), consecutiveRefusals: refusedInARow,
            areOnlyBadTokens: judgesFirst && (firstBadTokens > 0 || !isAllBadTokens)
                ? isAllBadTokens : nil,
            badTokens: badTokenCount, windowResponses: min(answerCount, Self.windowCount))
    }
}
