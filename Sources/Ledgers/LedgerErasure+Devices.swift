internal import BroadsideAPNs
import BroadsideLedgerFormat
import BroadsideLists
import BroadsideRows
import BroadsideSupport

extension LedgerErasure {
    /// Reads the devices. Each row must have a token: the erasure would miss a device whose row
    /// can't be read.
    static func read(
        _ tokens: TokenSource, _ tokenColumn: String?, into devices: inout DeviceSet
    ) throws(BroadsideError) {
        if case .single(let token) = tokens {
            guard let digits = canonicalToken(token) else {
                throw notDeviceToken(token, option: "token")
            }
            _ = devices.insert(digits.rawSpan)
            return
        }
        let list = try TokenList(
            tokens, format: nil, tokenColumn: tokenColumn, hasFormatOption: false)
        var cursor = try RowCursor(list, endsOnSignals: true)
        var digits = TokenDigits()
        var overwritten = OverwrittenRows()
        var lengths = ErasedLengths()
        let consequence = "devices may be missing, so nothing was changed"
        while let row = try cursor.next() {
            let refusal = digits.write {
                cursor.reader.readToken(cursor.reader.field(0), into: &$0)
            }
            if let refusal {
                overwritten.take(row, of: cursor.reader)
                if overwritten.count > 0 { try list.refuseDamage(overwritten, so: consequence) }
                throw .request(
                    list.name,
                    ": line \(row.line) has no device token (\(refusal.text)), so nothing was "
                        + "changed: correct that line")
            }
            lengths.note(digits.count, line: row.line)
            guard devices.insert(digits.bytes) else {
                throw .request(
                    list.name,
                    " has more than \(grouped(DeviceSet.countLimit)) devices: divide it, and forget one "
                        + "part after the other")
            }
        }
        guard devices.count > 0 else {
            throw .request(list.name, " has no row: name a list of the devices to forget")
        }
        try list.refuseDamage(overwritten, so: consequence)
        lengths.warn(list)
    }
}
