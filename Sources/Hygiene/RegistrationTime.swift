/// When a device registered its token, as a column of a list says it.
///
/// A time that no device can have registered at is unreadable, as is a text that is no time: what
/// cannot be read must not cost a token. `0`, seconds since 2001, a serial day of a spreadsheet and other
/// numbers that count from elsewhere would pass as times of long ago.
public struct RegistrationTime: Sendable {
    /// 2009-01-01 00:00 UTC: APNs opened in June of that year.
    private static let earliest: Int64 = 1_230_768_000_000
    /// The date may be tomorrow's where the device is.
    private static let ahead: Int64 = 86_400_000

    private let latest: Int64

    /// - Parameter nowMilliseconds: The time, milliseconds since 1970.
    public init(nowMilliseconds: UInt64) {
        latest = Int64(clamping: min(nowMilliseconds, 1 << 60)) + Self.ahead
    }

    /// The last millisecond since 1970 that a column's text may mean; nil where it is unreadable.
    public func milliseconds(_ text: RawSpan) -> Int64? {
        guard let time = WrittenTime(text), time.first >= Self.earliest, time.first <= latest else {
            return nil
        }
        return time.last
    }
}
