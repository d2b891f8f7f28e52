import BroadsideLedgerFormat
import BroadsideLedgers
import BroadsideLists
import BroadsidePayloads
import BroadsideSupport

extension SendOptions {
    /// Whether rows may be skipped for reasons that require an `ExclusionScan` before the first
    /// request. A filter requires no scan, because it depends only on the row itself.
    var mayExcludeRows: Bool {
        suppress != nil || skipsDuplicates || asksEarlierLedgers || split?.holdout != nil
    }
}

extension ExclusionScan {
    /// - Returns: nil if the options skip no rows.
    ///
    /// - Parameters:
    ///   - topic: Topic of the campaign; nil: unknown.
    ///   - begun: Manifest of a campaign that began earlier. nil: the campaign begins now, or the
    ///     manifest is not needed.
    ///   - isBegun: Whether the campaign began earlier.
    init?(
        _ options: SendOptions, payloads: PayloadSet, topic: String?, begun: Manifest?,
        isBegun: Bool
    ) throws(BroadsideError) {
        let earlier = options.earlierLedgers(topic: topic)
        // The directories are checked only when a campaign begins. Later, its skipped rows are
        // known, and the directories may be gone.
        if begun == nil { try earlier?.check() }
        try self.init(
            of: options.tokens, suppress: options.suppress,
            skipsDuplicates: options.skipsDuplicates, rules: options.rules,
            split: options.split,
            earlier: earlier?.reader,
            campaign: begun.map { RunningCampaign($0) }
                ?? RunningCampaign(number: options.campaignID),
            tokenColumn: options.tokenColumn, payloads: payloads,
            zones: try options.delivery.unsentZones())
        self.isBegun = isBegun
        isPart = options.part != nil
        maxInvalid = options.maxInvalid
    }
}

extension RunningCampaign {
    /// Creates the description of a campaign that began earlier.
    init(_ manifest: Manifest) {
        self.init(
            startedAtMilliseconds: manifest.firstStartedAtMilliseconds,
            number: manifest.campaignNumber)
    }
}
