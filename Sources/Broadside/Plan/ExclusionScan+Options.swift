import BroadsideLists
import BroadsidePayloads
import BroadsideSupport

extension ExclusionScan {
    /// - Returns: nil if nothing is skipped.
    init?(_ options: SendOptions, payloads: PayloadSet) throws(BroadsideError) {
        try self.init(
            of: options.tokens, suppress: options.suppress,
            skipsDuplicates: options.skipsDuplicates,
            tokenColumn: options.tokenColumn, payloads: payloads)
    }
}
