/// The schedule of provider tokens, in seconds. Only the key and the time determine it, so all
/// machines that hold a key use the same token without communication.
///
///     windows       |<--------- 30 min ---------->|<--------- 30 min ---------->|
///     token in use       |<-- first window's token --->|<-- second window's token
///     its age       0    5 min                         35 min
///
/// Apple: "Refresh your token no more than once every 20 minutes and no less than once every 60
/// minutes." A token is dated (`iat`) at the start of its window, and used from five minutes later.
/// So the clock of a machine may be five minutes wrong. If the clock is fast, the token is still
/// not dated in the future. If the clock is slow, the token is at most 40 minutes old.
public enum ProviderTokenAge {
    /// Length of a window. The first window starts in 1970. A token is dated at its window's start.
    public static let windowSeconds: UInt64 = 30 * 60
    /// The delay from the start of a window to the first use of its token.
    public static let changeSeconds: UInt64 = 5 * 60
    /// Minimum age at which a token is renewed. APNs responds to an earlier renewal with
    /// TooManyProviderTokenUpdates.
    public static let renewableSeconds: UInt64 = 20 * 60
    /// Age from which a token is no longer used.
    public static let usableSeconds: UInt64 = 55 * 60
    /// Maximum age of a token; APNs responds to an older token with ExpiredProviderToken.
    public static let expirySeconds: UInt64 = 60 * 60
    /// Time for which renewal is suspended after TooManyProviderTokenUpdates.
    public static let freezeSeconds: UInt64 = 20 * 60

    /// Returns the start of the window that contains a time.
    ///
    /// - Parameter seconds: Seconds since 1970.
    public static func windowStart(_ seconds: UInt64) -> UInt64 {
        seconds - seconds % windowSeconds
    }

    /// Returns the `iat` of the token in use at a time.
    ///
    /// - Parameter seconds: Seconds since 1970.
    public static func issueTime(at seconds: UInt64) -> UInt64 {
        let issued = windowStart(seconds - min(seconds, changeSeconds))
        assert(seconds - issued < windowSeconds + changeSeconds, "a token in use is young enough")
        return issued
    }
}
