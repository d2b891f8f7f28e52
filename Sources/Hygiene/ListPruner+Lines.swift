import BroadsideAPNs
import BroadsideRows
import BroadsideSupport

extension ListPruner {
    /// Processes lines; returns the end of the last complete one.
    mutating func goThroughLines(
        _ window: PrunerWindow, from start: Int, isLast: Bool, removed: inout [UInt8]
    ) -> Int {
        let end = window.count
        var offset = start
        while true {
            passLivingTokens(window, &offset)
            guard offset < end else { return end }
            let newline = window.find(UInt8(ascii: "\n"), in: offset..<end)
            guard newline != nil || isLast else { return offset }
            let stop = newline ?? end
            let next = newline.map { $0 + 1 } ?? end
            if !window.isBlankLine(offset..<stop) {
                counts.rows += 1
                var textEnd = stop
                if textEnd > offset, window.byte(at: textEnd - 1) == 0x0d { textEnd -= 1 }
                if stop - offset > RowChunk.rowByteCountMax {
                    counts.withoutToken += 1
                    counts.overwritten.take(
                        window.bytes(offset..<textEnd), in: layout.format, line: nil)
                } else if let record = findDead(window.bytes(offset..<textEnd)) {
                    remove(window, offset, next, reason: record.reason, removed: &removed)
                }
            }
            offset = next
        }
    }

    /// Skips lines of exactly 64 digits whose token is certainly alive. Most lists consist almost
    /// entirely of such lines. No search for the line end is needed, because 64 digits contain no
    /// line end.
    private mutating func passLivingTokens(_ window: PrunerWindow, _ offset: inout Int) {
        var rows: UInt64 = 0
        while window.count - offset >= 66 {
            let line = window.bytes(offset..<offset + 66)
            let next: Int
            if line.byte(at: 64) == UInt8(ascii: "\n") {
                next = offset + 65
            } else if line.byte(at: 64) == UInt8(ascii: "\r"),
                line.byte(at: 65) == UInt8(ascii: "\n")
            {
                next = offset + 66
            } else {
                break
            }
            let text = line.extracting(first: 64)
            let isToken = digits.write { TokenText.canonicalize(text, into: &$0) }
            // A bracketed token of fewer digits is left to the general code.
            guard isToken, digits.count == 64 else { break }
            if dead.mayContain(TokenText.fingerprint(digits.bytes)) { break }
            rows += 1
            offset = next
        }
        counts.rows += rows
    }
}
