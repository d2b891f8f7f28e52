/// Identification of the running campaign, for reading earlier ledgers.
package struct RunningCampaign: Sendable {
    /// Its first start, milliseconds since 1970; later verdicts do not count as earlier. nil: now.
    package var startedAtMilliseconds: UInt64?
    /// Its number; nil if not drawn yet. Ledgers with this number are its own.
    package var number: UInt64?

    /// Identifies a campaign that starts or is resumed.
    package init(startedAtMilliseconds: UInt64? = nil, number: UInt64? = nil) {
        self.startedAtMilliseconds = startedAtMilliseconds
        self.number = number
    }
}
