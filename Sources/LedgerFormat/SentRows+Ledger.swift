public import BroadsidePolicy
import BroadsideRows

extension SentRows {
    /// Counts the rows of a ledger.
    ///
    /// - Parameter ledger: Summary of the ledger.
    public init(_ ledger: LedgerSummary) {
        let gone = ledger.goneCount
        self.init(
            accepted: ledger.count(.accepted), refused: ledger.count(.rejected) - gone, gone: gone,
            open: ledger.count(.failed) + ledger.count(.unknown) + ledger.count(.inDoubt))
    }
}
