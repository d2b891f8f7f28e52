import BroadsideLedgers
import BroadsideObservability
import BroadsideSupport

/// How long the responses to a campaign's requests took, as its ledger keeps it.
package enum LedgerLatencies {
    /// Responses that took at most so many milliseconds, and more than the column before.
    package struct Column: Sendable {
        /// Milliseconds.
        package var upTo: Double
        /// About: what was counted together and lies in two columns is divided between them.
        package var answers: Int
    }

    /// A histogram, each column wider than the one before by the same factor; empty without responses.
    ///
    /// - Parameters:
    ///   - path: The ledger's.
    ///   - count: How many columns.
    package static func columns(ofLedger path: String, count: Int) throws(BroadsideError)
        -> [Column]
    {
        let telemetry = Telemetry.read(from: try LedgerDirectory.openToRead(path))
        return telemetry?.latency.columns(count).map { column in
            Column(upTo: Double(column.upper / 1000) / 1000, answers: Int(column.count.rounded()))
        } ?? []
    }
}
