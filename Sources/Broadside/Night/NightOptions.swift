import BroadsideSupport

/// What `broadside night` is asked to do.
public struct NightOptions: Sendable {
    /// What is sent; its ledger and how that is used are the night's to say.
    public var send = SendOptions()
    /// The campaign's file.
    public var campaign = ""
    /// The folder of all campaigns' ledgers.
    public var ledgers: String?
    /// The night's date, `2026-11-20`; nil: today's, or that of the night that continues.
    public var date: String?
    /// How long after its start a night continues on the next day, in nanoseconds.
    public var nightLength = defaultNightLength
    /// How many ledgers are kept; nil: all.
    public var keep: Int?

    /// The defaults of the contract.
    public init() {}

    /// `--night-length` if none is given.
    public static var defaultNightLength: UInt64 { 12 * 3_600 * second }
    /// The longest night: the next one may begin 23 hours after it, when the clocks are set forward.
    public static var nightLengthLimit: UInt64 { 20 * 3_600 * second }
    /// The most ledgers that can be kept.
    public static var keepLimit: Int { 4_096 }
}
