/// A campaign, as earlier ledgers are asked about it.
package struct RunningCampaign: Sendable {
    /// Its first start, milliseconds since 1970; what was settled later is not earlier. nil: now.
    package var startedAtMilliseconds: UInt64?
    /// Its number; nil: not drawn yet. Ledgers with the same number are its own.
    package var number: UInt64?

    /// A campaign that begins, or one that was begun.
    package init(startedAtMilliseconds: UInt64? = nil, number: UInt64? = nil) {
        self.startedAtMilliseconds = startedAtMilliseconds
        self.number = number
    }
}
