import BroadsideLists
import BroadsidePayloads
import BroadsideSupport

extension SendOptions {
    /// Whether rows may end as `skipped`: an `ExclusionScan` finds them before the first request.
    var mayExcludeRows: Bool { suppress != nil || skipsDuplicates }
}

extension ExclusionScan {
    /// - Returns: nil if nothing is skipped.
    init?(_ options: SendOptions, payloads: PayloadSet) throws(BroadsideError) {
        try self.init(
            of: options.tokens, suppress: options.suppress,
            skipsDuplicates: options.skipsDuplicates,
            tokenColumn: options.tokenColumn, payloads: payloads)
    }
}
