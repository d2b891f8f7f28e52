/// Returns the beginning of a text that was given instead of a token, in a form suitable for a
/// terminal line. If the text may contain a device token, the result has only the token's first
/// digits, as in a log. With a whole token, any reader could address the device.
package func tokenExcerpt(_ text: some Sequence<UInt8>) -> String {
    let limit = 40
    let shownDigitCount = 8
    var shown: [UInt8] = []
    var rest = Array(text.prefix(1_024))[...]
    while shown.count < limit, let first = rest.first {
        if let end = endOfToken(rest) {
            var digitCount = 0
            shown += rest.prefix { byte in
                if isDigit(byte) { digitCount += 1 }
                return digitCount <= shownDigitCount
            }
            shown += "…".utf8
            rest = rest[end...]
        } else if isDigit(first) {
            let group = rest.prefix(while: isDigit)
            let count = min(group.count, limit - shown.count)
            shown += group.prefix(count)
            rest.removeFirst(count)
        } else {
            shown.append(first)
            rest.removeFirst()
        }
    }
    assert(shown.count < limit + 19, "an excerpt stays short")
    let words = printable(String(decoding: shown, as: UTF8.self))
    return rest.isEmpty || words.hasSuffix("…") ? words : words + "…"
}

/// Returns the end of a possible device token at the start of a text; nil if the text does not
/// start with one. A token has many digits in a row, or has more groups of digits than a UUID,
/// which has five. A blank, a colon or a hyphen separates two groups.
private func endOfToken(_ text: ArraySlice<UInt8>) -> Int? {
    let secretDigitCount = 16
    let groupsOfUUID = 5
    var group = text.prefix(while: isDigit)
    guard group.count < secretDigitCount else { return group.endIndex }
    guard !group.isEmpty else { return nil }
    var (groupCount, digitCount) = (1, group.count)
    while group.endIndex < text.endIndex, " :-".utf8.contains(text[group.endIndex]) {
        let next = text[(group.endIndex + 1)...].prefix(while: isDigit)
        if next.isEmpty { break }
        group = next
        groupCount += 1
        digitCount += group.count
    }
    return groupCount > groupsOfUUID && digitCount >= secretDigitCount ? group.endIndex : nil
}

private func isDigit(_ byte: UInt8) -> Bool { Unicode.Scalar(byte).properties.isASCIIHexDigit }
