/// The counts of a `RefusalGuard`.
public struct RefusalCounts: Sendable, Equatable {
    /// Number of responses.
    public var responses: UInt64
    /// Current number of consecutive refusals of the request or the credential.
    public var consecutiveRefusals: Int
    /// Whether all responses so far were BadDeviceToken or DeviceTokenNotForTopic. Responses that
    /// show nothing about the campaign do not count. nil before the first response that counts, or
    /// if the first responses are not judged.
    public var areOnlyBadTokens: Bool?
    /// Number of BadDeviceToken among the last `windowResponses` responses.
    public var badTokens: Int
    /// Number of responses that `--max-bad-tokens` considers: at most 10,000.
    public var windowResponses: Int

    /// Combines the counts of several guards: adds them, but takes the maximum of
    /// `consecutiveRefusals`.
    public static func sum(_ all: [RefusalCounts]) -> RefusalCounts {
        RefusalCounts(
            responses: all.reduce(0) { $0 + $1.responses },
            consecutiveRefusals: all.map(\.consecutiveRefusals).max() ?? 0, areOnlyBadTokens: nil,
            badTokens: all.reduce(0) { $0 + $1.badTokens },
            windowResponses: all.reduce(0) { $0 + $1.windowResponses })
    }
}

extension RefusalGuard {
    /// The counts so far.
    public var counts: RefusalCounts {
        RefusalCounts(
            responses: UInt64(answerCount), consecutiveRefusals: max(refusedInARow, lateRefusals),
            areOnlyBadTokens: judgesFirst && (firstBadTokens > 0 || !isAllBadTokens)
                ? isAllBadTokens : nil,
            badTokens: badTokenCount, windowResponses: min(answerCount, Self.windowCount))
    }
}
