import BroadsideLedgers
import BroadsideObservability
import BroadsideSupport

/// Response latencies of a campaign's requests, from its ledger.
package enum LedgerLatencies {
    /// Number of responses whose latency is at most the limit of this column, and above the limit
    /// of the previous column.
    package struct Column: Sendable {
        /// Upper limit of the latency, milliseconds.
        package var upTo: Double
        /// Number of responses. It is approximate: a bucket that spans two columns is divided
        /// between them.
        package var answers: Int
    }

    /// Returns a histogram in which each column is wider than the previous one by the same factor;
    /// empty without responses.
    ///
    /// - Parameters:
    ///   - path: Path of the ledger.
    ///   - count: Number of columns.
    package static func columns(ofLedger path: String, count: Int) throws(BroadsideError)
        -> [Column]
    {
        let telemetry = Telemetry.read(from: try LedgerDirectory.openToRead(path))
        return telemetry?.latency.columns(count).map { column in
            Column(upTo: Double(column.upper / 1000) / 1000, answers: Int(column.count.rounded()))
        } ?? []
    }
}
