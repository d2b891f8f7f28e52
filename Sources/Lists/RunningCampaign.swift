/// Identification of the running campaign, for reading earlier ledgers.
package struct RunningCampaign: Sendable {
    /// Time of the campaign's first start, milliseconds since 1970; only verdicts before it count
    /// as earlier ones. nil: now.
    package var startedAtMilliseconds: UInt64?
    /// Number of the campaign; nil if not drawn yet. Ledgers with this number belong to the
    /// campaign.
    package var number: UInt64?

    /// Identifies a campaign that starts or is resumed.
    package init(startedAtMilliseconds: UInt64? = nil, number: UInt64? = nil) {
        self.startedAtMilliseconds = startedAtMilliseconds
        self.number = number
    }
}
