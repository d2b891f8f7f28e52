/// Registration time of a device's token, from a column of a list.
///
/// An impossible time counts as unreadable, like a text that is not a time. A token with an
/// unreadable time is kept. Without this rule, some numbers would count as times long ago, and
/// their tokens would be removed: `0`, seconds since 2001, serial days of a spreadsheet, and other
/// numbers with a different epoch.
public struct RegistrationTime: Sendable {
    /// 2009-01-01 00:00 UTC; APNs opened in June of that year.
    private static let earliest: Int64 = 1_230_768_000_000
    /// Tolerance for time zones in which it is already the next day, in milliseconds.
    private static let ahead: Int64 = 86_400_000

    private let latest: Int64

    /// - Parameter nowMilliseconds: Current time, milliseconds since 1970.
    public init(nowMilliseconds: UInt64) {
        latest = Int64(clamping: min(nowMilliseconds, 1 << 60)) + Self.ahead
    }

    /// A registration time that was read from a column's text.
    public struct Reading: Sendable {
        /// Latest time that the text may mean, in milliseconds since 1970. The time is rounded up.
        /// So a time that is less than a millisecond later than APNs' timestamp counts as later.
        public let milliseconds: Int64
        /// Whether the text names no offset from UTC, and is read as UTC.
        public let lacksOffset: Bool
    }

    /// Reads a column's text; nil if the text is unreadable.
    public func read(_ text: RawSpan) -> Reading? {
        guard let time = WrittenTime(text), time.first >= Self.earliest, time.first <= latest else {
            return nil
        }
        return Reading(milliseconds: time.lastRoundedUp, lacksOffset: time.lacksOffset)
    }

    /// Returns the latest time that a column's text may mean, as in `Reading`; nil if the text is
    /// unreadable.
    public func milliseconds(_ text: RawSpan) -> Int64? { read(text)?.milliseconds }
}
