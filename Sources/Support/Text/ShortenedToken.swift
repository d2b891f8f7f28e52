/// Shortens a row's device token wherever it occurs in displayed text. A payload or header may
/// contain the whole token, for example with `{{token}}`.
package struct ShortenedToken {
    /// Digits of the token, in lower case.
    private let digits: [UInt8]

    /// Number of digits that are shown.
    private static let shownCount = 8

    /// - Parameter digits: Digits of the token, in lower case.
    package init(_ digits: [UInt8]) { self.digits = digits }

    /// The shortened token alone.
    package var text: String { "\(beginning)… (\(digits.count) digits)" }

    private var beginning: String {
        String(decoding: digits.prefix(Self.shownCount), as: UTF8.self)
    }

    /// Returns the text with the token shortened, regardless of case and of spaces between digits.
    package func shortened(in text: [UInt8]) -> [UInt8] {
        guard digits.count > 2 * Self.shownCount else { return text }
        var result: [UInt8] = []
        var index = 0
        while index < text.count {
            if let end = end(in: text, from: index) {
                result += Array("\(beginning)…".utf8)
                index = end
            } else {
                result.append(text[index])
                index += 1
            }
        }
        return result
    }

    /// Returns the index after a token that begins at `start`; nil if no token begins there.
    private func end(in text: [UInt8], from start: Int) -> Int? {
        var index = start
        for (position, digit) in digits.enumerated() {
            while position > 0, index < text.count, text[index] == UInt8(ascii: " ") { index += 1 }
            guard index < text.count, Self.lower(text[index]) == digit else { return nil }
            index += 1
        }
        return index
    }

    private static func lower(_ byte: UInt8) -> UInt8 {
        (UInt8(ascii: "A")...UInt8(ascii: "F")).contains(byte) ? byte | 0x20 : byte
    }
}
