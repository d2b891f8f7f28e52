internal import BroadsideAPNs
internal import BroadsidePrimitives
internal import BroadsideRows
internal import BroadsideSupport

/// `{{column:fit}}`: a value that is shortened so that its payload fits.
extension PayloadRenderer {
    /// The text that marks the end of a shortened value.
    private static let ellipsis: StaticString = "…"

    /// Default of the shortened text, for each payload.
    static func fitDefaults(of set: PayloadSet) -> [[UInt8]] {
        guard set.templates.contains(where: { $0.fittedColumn != nil }) else { return [] }
        return set.templates.map { template in
            let fitted = template.segments.first { $0.placeholder.kind == .fit }
            return Array(JSONText.decoded(fitted?.placeholder.fallback ?? []).utf8)
        }
    }

    /// Appends the shortened value after the payload's other values. Then moves the shortened value
    /// to its position between the other values.
    ///
    /// - Parameter payloadCount: Number of bytes of the payload. The call adds the bytes of the
    ///   shortened value.
    /// - Returns: Reason why the row can't be sent; `payloadTooLarge` if the payload has no value
    ///   to shorten, or is too large even without it.
    @inline(never)
    mutating func appendFitted(
        of template: Int, _ payloadCount: inout Int, _ reader: borrowing RowReader
    ) -> Reason? {
        let script = scripts[template]
        culprit = nil
        isShortened = false
        guard script.fit >= 0, payloadCount <= limit else {
            culprit = longestCulprit(script, reader)
            return .payloadTooLarge
        }
        let step = steps[script.fit]
        let start = count
        let budget = limit - payloadCount
        let field = reader.field(Int(step.field))
        let isText: Bool
        if field.isText, step.fallback == nil || !Self.isBlank(field, reader) {
            isText = appendFitting(reader.text(field), budget)
        } else {
            let text = fitDefaults[template]
            isText = appendFitting(text.rawSpan, budget)
        }
        guard isText else {
            culprit = Self.culprit(step)
            return .badValue
        }
        let length = count - start
        assert(length <= budget, "what is shortened fits")
        payloadCount += length
        let place = pieceOffset(ofStep: script.fit, in: script)
        // Three reversals exchange the value and the pieces behind its position.
        reverse(place + 2..<start)
        reverse(start..<count)
        reverse(place + 2..<count)
        pieces[place] = UInt8(truncatingIfNeeded: length)
        pieces[place + 1] = UInt8(truncatingIfNeeded: length >> 8)
        return nil
    }

    /// Offset of a step's piece, which starts with its length.
    private func pieceOffset(ofStep index: Int, in script: Script) -> Int {
        var offset = 0
        for _ in script.steps.lowerBound..<index {
            offset += 2 + Int(pieces[offset]) + Int(pieces[offset + 1]) << 8
        }
        assert(pieces[offset] == 0 && pieces[offset + 1] == 0, "its piece is empty")
        return offset
    }

    private mutating func reverse(_ range: Range<Int>) {
        var (low, high) = (range.lowerBound, range.upperBound - 1)
        while low < high {
            let byte = pieces[low]
            pieces[low] = pieces[high]
            pieces[high] = byte
            low += 1
            high -= 1
        }
    }

    /// Appends a text for a JSON string, or as many of its characters as fit, followed by an
    /// ellipsis.
    ///
    /// - Parameter budget: Maximum number of bytes, with escapes and ellipsis. If the text does not
    ///   fit, and there is not enough room for an ellipsis, nothing is appended.
    /// - Returns: false if any part of the text is not UTF-8.
    private mutating func appendFitting(_ text: RawSpan, _ budget: Int) -> Bool {
        let start = count
        let keptLimit = budget - Self.ellipsis.utf8CodeUnitCount
        // The last scalar before which the ellipsis still fits.
        var (cutOffset, cutCount) = (0, count)
        var offset = 0
        while offset < text.byteCount {
            guard let length = UTF8Scalar.count(in: text, at: offset) else { return false }
            if count - start <= keptLimit { (cutOffset, cutCount) = (offset, count) }
            let end = offset + length
            guard count - start + Self.escapedCount(text, offset..<end) <= budget else {
                guard Self.isUTF8(text, from: end) else { return false }
                isShortened = true
                shortenedRows += 1
                let boundary = CharacterBoundary.last(in: text, upTo: cutOffset)
                count = cutCount - Self.escapedCount(text, boundary..<cutOffset)
                if keptLimit >= 0 { appendEllipsis() } else { count = start }
                return true
            }
            if length == 1 {
                appendEscaped(text.byte(at: offset))
            } else {
                for place in offset..<end { append(text.byte(at: place)) }
            }
            offset = end
        }
        return true
    }

    private mutating func appendEllipsis() {
        for offset in 0..<Self.ellipsis.utf8CodeUnitCount {
            // SAFETY: the offset is below the number of bytes of the static string.
            append(unsafe Self.ellipsis.utf8Start[offset])
        }
    }

    /// Number of bytes that a part of a text takes in a JSON string, with escapes.
    private static func escapedCount(_ text: RawSpan, _ part: Range<Int>) -> Int {
        var count = 0
        for offset in part {
            switch text.byte(at: offset) {
            case UInt8(ascii: "\""), UInt8(ascii: "\\"), 0x08, 0x09, 0x0a, 0x0c, 0x0d: count += 2
            case 0..<0x20: count += 6
            default: count += 1
            }
        }
        return count
    }

    private static func isUTF8(_ text: RawSpan, from start: Int) -> Bool {
        var offset = start
        while offset < text.byteCount {
            guard let length = UTF8Scalar.count(in: text, at: offset) else { return false }
            offset += length
        }
        return true
    }
}
