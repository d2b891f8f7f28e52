import BroadsideSupport

/// Options of `broadside night`.
public struct NightOptions: Sendable {
    /// Options of the night's send. The night itself determines `ledger` and `ledgerUse`.
    public var send = SendOptions()
    /// Path of the campaign's file.
    public var campaign = ""
    /// Folder of all campaigns' ledgers.
    public var ledgers: String?
    /// Date of the night, such as `2026-11-20`; nil: today, or the date of a night that continues.
    public var date: String?
    /// File with the date for starts without `date`. The first start writes it; nil: none.
    public var dateFile: String?
    /// Length of a night, in nanoseconds. A start within this time after the first one continues
    /// the night, even on the next day.
    public var nightLength = defaultNightLength
    /// Number of ledgers to keep; nil: all.
    public var keep: Int?

    /// Creates options with the documented defaults.
    public init() {}

    /// Default of `--night-length`.
    public static var defaultNightLength: UInt64 { 12 * 3_600 * second }
    /// Limit on `--night-length`. The limit is below 23 hours, because the next night may begin 23
    /// hours later if clocks are set forward.
    public static var nightLengthLimit: UInt64 { NightHistory.dayLength * millisecond }
    /// Maximum value of `--keep`.
    public static var keepLimit: Int { 4_096 }
}
