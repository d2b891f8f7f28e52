/// Identification of the running campaign, for reading earlier ledgers.
package struct RunningCampaign: Sendable {
    /// Time of the campaign's first start, in milliseconds since 1970; nil for the current time.
    /// Only verdicts before this time count as earlier verdicts.
    package var startedAtMilliseconds: UInt64?
    /// Number of the campaign; nil if no number was chosen yet. Ledgers with this number are the
    /// campaign's own.
    package var number: UInt64?

    /// Creates the identification of a campaign that starts or is resumed.
    package init(startedAtMilliseconds: UInt64? = nil, number: UInt64? = nil) {
        self.startedAtMilliseconds = startedAtMilliseconds
        self.number = number
    }
}
