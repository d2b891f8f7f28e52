import BroadsideLedgerFormat
import BroadsideLedgers
import BroadsideLists
import BroadsidePayloads
import BroadsideSupport

extension SendOptions {
    /// Whether rows may end as `skipped` for what only an `ExclusionScan` finds out, before the first
    /// request. What a filter leaves out can be seen in the row itself.
    var mayExcludeRows: Bool { suppress != nil || skipsDuplicates || asksEarlierLedgers }
}

extension ExclusionScan {
    /// - Returns: nil if nothing is skipped.
    ///
    /// - Parameters:
    ///   - topic: The campaign's topic; nil: it is not known which.
    ///   - begun: What the campaign's ledger says; nil: the campaign was not begun.
    init?(
        _ options: SendOptions, payloads: PayloadSet, topic: String?, begun: Manifest?
    ) throws(BroadsideError) {
        let earlier = options.earlierLedgers(topic: topic)
        // The rows of a campaign that was begun are known, and the directories may be gone by now.
        if begun == nil { try earlier?.check() }
        try self.init(
            of: options.tokens, suppress: options.suppress,
            skipsDuplicates: options.skipsDuplicates, filter: options.filter,
            earlier: earlier?.reader,
            campaign: begun.map { RunningCampaign($0) }
                ?? RunningCampaign(number: options.campaignID),
            tokenColumn: options.tokenColumn, payloads: payloads)
    }
}

extension RunningCampaign {
    /// A campaign that was begun.
    init(_ manifest: Manifest) {
        self.init(
            startedAtMilliseconds: manifest.firstStartedAtMilliseconds,
            number: manifest.campaignNumber)
    }
}
