/// Returns the beginning of a text in place of a token, in a form suitable for a terminal line. If
/// it may be a device token, no more digits are shown than in a log, because any reader could
/// address the device.
package func tokenExcerpt(_ text: some Sequence<UInt8>) -> String {
    let limit = 40
    let secretDigitCount = 16
    var shown: [UInt8] = []
    var rest = Array(text.prefix(1_024))[...]
    while shown.count < limit, let first = rest.first {
        let digits = rest.prefix { Unicode.Scalar($0).properties.isASCIIHexDigit }
        if digits.isEmpty {
            shown.append(first)
            rest.removeFirst()
        } else if digits.count >= secretDigitCount {
            shown += digits.prefix(8) + Array("…".utf8)
            rest.removeFirst(digits.count)
        } else {
            let count = min(digits.count, limit - shown.count)
            shown += digits.prefix(count)
            rest.removeFirst(count)
        }
    }
    assert(shown.count < limit + 11, "an excerpt stays short")
    let words = printable(String(decoding: shown, as: UTF8.self))
    return rest.isEmpty || words.hasSuffix("…") ? words : words + "…"
}
