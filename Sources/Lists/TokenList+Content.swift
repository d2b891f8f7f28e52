import BroadsideLedgerFormat
import BroadsideRows
package import BroadsideSupport

extension TokenList {
    /// Number of bytes that are read from the list at a time.
    private static let pieceByteCount = 1 << 20

    /// Returns the hash of the whole decoded list.
    ///
    /// - Parameters:
    ///   - hash: Hash of the start of the list, if that has been read.
    ///   - isCancelled: Called periodically; true ends the reading.
    /// - Returns: 16 hexadecimal digits; nil if the reading was cancelled.
    func contentHash(
        from hash: ListHash = ListHash(), isCancelled: () throws(BroadsideError) -> Bool
    ) throws(BroadsideError) -> String? {
        var hash = hash
        var buffer = ReadBuffer(byteCount: Self.pieceByteCount)
        while true {
            if try isCancelled() { return nil }
            if try read(at: hash.byteCount, into: &buffer) == 0 { return hash.text() }
            hash.append(buffer.bytes)
        }
    }

    /// Returns the hash of the whole list; ends on a stop signal.
    package func contentHash() throws(BroadsideError) -> String? {
        try contentHash { () throws(BroadsideError) in
            try SignalWatch.stopIfRequested()
            return false
        }
    }

    /// Returns the hash of the list's header; nil if the format has no header.
    package func headerHash() throws(BroadsideError) -> String? {
        guard format.hasHeader else { return nil }
        let source = try ListSource(self)
        _ = try source.next(rowLimit: 1)
        guard let header = source.header else { return nil }
        var hash = ListHash()
        hash.append(header.rawSpan)
        return hash.text()
    }

    /// Whether the list has more than one row.
    package func hasSeveralRows() throws(BroadsideError) -> Bool {
        let source = try ListSource(self)
        var rows = 0
        while rows < 2, let chunk = try source.next(rowLimit: 2) { rows += chunk.rowCount }
        return rows > 1
    }

    /// Refuses a list with more rows than the ledger can number.
    ///
    /// - Parameter count: Rows read so far.
    func checkRowCount(_ count: UInt64) throws(BroadsideError) {
        guard count > LedgerFormat.rowLimit else { return }
        throw .request(
            name,
            ": it has more than \(grouped(LedgerFormat.rowLimit)) rows: split it into several lists"
        )
    }

    /// - Throws: Exit code 5 if the list's file has changed since it was opened.
    func checkUnchanged() throws(BroadsideError) { try bytes.checkUnchanged() }
}
