/// When provider tokens are dated and changed, in seconds. Nothing but the key and the time decides, so
/// all machines that hold a key use the same token without a word between them.
///
///     window      |<--------- 30 min -------->|<--------- 30 min -------->|
///     token            |<------- of this window ------>|<------ of the next
///                 iat  ^ 5 min later it is used            at most 35 min old
///
/// Apple: "Refresh your token no more than once every 20 minutes and no less than once every 60
/// minutes." A change comes five minutes into a window, and clocks may differ by as much: a clock that is
/// five minutes ahead dates no token into the future, and one that is five minutes behind uses none that
/// is older than 40 minutes.
public enum ProviderTokenAge {
    /// A token is dated at the start of a window, counted from 1970.
    public static let windowSeconds: UInt64 = 30 * 60
    /// So long after the start of a window its token is used.
    public static let changeSeconds: UInt64 = 5 * 60
    /// Below this age a renewal is answered with TooManyProviderTokenUpdates.
    public static let renewableSeconds: UInt64 = 20 * 60
    /// From this age on a token is not used.
    public static let usableSeconds: UInt64 = 55 * 60
    /// Above this age APNs answers ExpiredProviderToken.
    public static let expirySeconds: UInt64 = 60 * 60
    /// For how long renewal is frozen after TooManyProviderTokenUpdates.
    public static let freezeSeconds: UInt64 = 20 * 60

    /// The start of the window in which a time lies.
    ///
    /// - Parameter seconds: Seconds since 1970.
    public static func windowStart(_ seconds: UInt64) -> UInt64 {
        seconds - seconds % windowSeconds
    }

    /// The `iat` of the token that is used at a time.
    ///
    /// - Parameter seconds: Seconds since 1970.
    public static func issueTime(at seconds: UInt64) -> UInt64 {
        windowStart(seconds - min(seconds, changeSeconds))
    }
}
