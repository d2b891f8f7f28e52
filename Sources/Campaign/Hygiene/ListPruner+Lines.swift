import APNs

extension ListPruner {
    /// Goes through lines; where the last one that is whole ends.
    mutating func goThroughLines(
        _ base: UnsafeMutableRawPointer, from start: Int, to end: Int, isLast: Bool,
        removed: inout [UInt8]
    ) -> Int {
        var offset = start
        while true {
            unsafe passLivingTokens(base, &offset, end)
            guard offset < end else { return end }
            let newline = unsafe find(UInt8(ascii: "\n"), base, offset, end)
            guard newline != nil || isLast else { return offset }
            let stop = newline ?? end
            let next = newline.map { $0 + 1 } ?? end
            if unsafe !isBlank(base, offset, stop, .lines) {
                counts.rows += 1
                var textEnd = stop
                // SAFETY: inside the window.
                if textEnd > offset,
                    unsafe base.load(fromByteOffset: textEnd - 1, as: UInt8.self) == 0x0d
                {
                    textEnd -= 1
                }
                let text = unsafe RawSpan(
                    _unsafeStart: base + offset, byteCount: textEnd - offset)
                if stop - offset > RowChunk.rowByteCountMax {
                    counts.withoutToken += 1
                } else if let record = findDead(text) {
                    unsafe remove(base, offset, next, reason: record.reason, removed: &removed)
                }
            }
            offset = next
        }
    }

    /// Passes by lines of exactly 64 digits whose token surely lives: nearly all lines of nearly
    /// all lists. Where the line end has to be is known, so none is searched: 64 digits hold none.
    private mutating func passLivingTokens(
        _ base: UnsafeMutableRawPointer, _ offset: inout Int, _ end: Int
    ) {
        let scratch = unsafe self.scratch
        var rows: UInt64 = 0
        // SAFETY: 65 bytes from `place` on are inside the window, and the scratch has room.
        while end - offset >= 66 {
            let place = unsafe base + offset
            let octet = unsafe place.load(fromByteOffset: 64, as: UInt8.self)
            let next: Int
            if octet == UInt8(ascii: "\n") {
                next = offset + 65
            } else if octet == UInt8(ascii: "\r"),
                unsafe place.load(fromByteOffset: 65, as: UInt8.self) == UInt8(ascii: "\n")
            {
                next = offset + 66
            } else {
                break
            }
            var digits = unsafe OutputRawSpan(buffer: scratch, initializedCount: 0)
            let text = unsafe RawSpan(_unsafeStart: place, byteCount: 64)
            guard TokenText.canonicalize(text, into: &digits) else { break }
            let count = unsafe digits.finalize(for: scratch)
            // A bracketed token of fewer digits is left to the careful way.
            guard count == 64 else { break }
            let token = unsafe RawSpan(_unsafeStart: scratch.baseAddress!, byteCount: 64)
            if dead.mayContain(TokenText.fingerprint(token)) { break }
            rows += 1
            offset = next
        }
        counts.rows += rows
    }
}
