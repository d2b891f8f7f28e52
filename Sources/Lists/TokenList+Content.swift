import BroadsideLedgerFormat
import BroadsideRows
package import BroadsideSupport

extension TokenList {
    /// Bytes that are read at once.
    private static let pieceByteCount = 1 << 20

    /// The hash of the whole list, decoded.
    ///
    /// - Parameters:
    ///   - hash: Of the list's beginning, where that was read before.
    ///   - isCancelled: Asked now and then; true ends it.
    /// - Returns: 16 hexadecimal digits; nil where it was ended.
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

    /// The hash of the whole list; a signal to stop ends it.
    package func contentHash() throws(BroadsideError) -> String? {
        try contentHash { () throws(BroadsideError) in
            try SignalWatch.stopIfRequested()
            return false
        }
    }

    /// The hash of its header; nil where its format has none.
    package func headerHash() throws(BroadsideError) -> String? {
        guard format.hasHeader else { return nil }
        let source = try ListSource(self)
        _ = try source.next(rowLimit: 1)
        guard let header = source.header else { return nil }
        var hash = ListHash()
        hash.append(header.rawSpan)
        return hash.text()
    }

    /// The ledger has no number for a row behind its limit.
    ///
    /// - Parameter count: Rows read so far.
    func checkRowCount(_ count: UInt64) throws(BroadsideError) {
        guard count > LedgerFormat.rowLimit else { return }
        throw .request(
            name,
            ": it has more than \(grouped(LedgerFormat.rowLimit)) rows: split it into several lists"
        )
    }

    /// - Throws: Exit code 5 where its file is not as it was when it was opened.
    func checkUnchanged() throws(BroadsideError) { try bytes.checkUnchanged() }
}
