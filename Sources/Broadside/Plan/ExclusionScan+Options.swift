import BroadsideLists
import BroadsidePayloads
import BroadsideSupport

extension SendOptions {
    /// Whether rows may end as `skipped` for what only an `ExclusionScan` finds out, before the first
    /// request. What a filter leaves out can be seen in the row itself.
    var mayExcludeRows: Bool { suppress != nil || skipsDuplicates }
}

extension ExclusionScan {
    /// - Returns: nil if nothing is skipped.
    init?(_ options: SendOptions, payloads: PayloadSet) throws(BroadsideError) {
        try self.init(
            of: options.tokens, suppress: options.suppress,
            skipsDuplicates: options.skipsDuplicates, filter: options.filter,
            tokenColumn: options.tokenColumn, payloads: payloads)
    }
}
