import BroadsideAPNs
import BroadsideSupport

/// What makes a line inside quotes a row with a device token, so that its quote was never closed.
///
/// A line is one if its token's column is a token of at least 32 digits, or one of at least 8 and the
/// line has as many fields as the header. Of an address's lines, `1 Long Road` is no token, `12345678`
/// has no second field, and `2000, Antwerp` is too short.
public struct RowShape: Sendable, Equatable {
    /// What stands between fields.
    let separator: UInt8
    /// The place of the token's column.
    let tokenIndex: Int
    /// The fields of the header.
    let columnCount: Int

    /// Digits of a token that is nothing else, whatever the line has besides.
    static let certainDigitCount = 32
    /// Digits of a token that is no word, no postal code and no number of a house.
    static let likelyDigitCount = 8
}

/// A line inside quotes, taken in piece by piece, as far as it says whether it is a row.
final class QuotedLine {
    private let shape: RowShape
    /// The place of the field in work.
    private var column = 0
    /// The text in the token's place, without quotes.
    private var token: [UInt8] = []
    private var isFieldEmpty = true
    private var isInQuotes = false
    private var isBehindQuote = false

    /// A token with blanks and brackets round its digits is no longer.
    private static let tokenLimit = 1_024

    init(_ shape: RowShape) { self.shape = shape }

    /// Starts with the next line.
    func begin() {
        column = 0
        token.removeAll(keepingCapacity: true)
        isFieldEmpty = true
        isInQuotes = false
        isBehindQuote = false
    }

    /// Takes in what follows of the line.
    func take(_ text: RawSpan, from start: Int, to end: Int) {
        for offset in start..<max(start, end) {
            let byte = text.byte(at: offset)
            if byte == UInt8(ascii: "\"") {
                takeQuote()
                continue
            }
            isBehindQuote = false
            if byte == shape.separator, !isInQuotes {
                column += 1
                isFieldEmpty = true
                continue
            }
            isFieldEmpty = false
            if column == shape.tokenIndex, token.count <= Self.tokenLimit { token.append(byte) }
        }
    }

    private func takeQuote() {
        if isInQuotes {
            isInQuotes = false
            isBehindQuote = true
        } else {
            // It opens a field, or is the second of a pair.
            isInQuotes = isFieldEmpty || isBehindQuote
            isBehindQuote = false
        }
        isFieldEmpty = false
    }

    /// Whether what was taken in is a row with a device token.
    var isRow: Bool {
        guard column >= shape.tokenIndex, token.count <= Self.tokenLimit,
            token.count >= RowShape.likelyDigitCount, token.allSatisfy(Self.mayBeOfToken)
        else { return false }
        var digits = TokenDigits()
        let text = token
        guard digits.write({ TokenText.canonicalize(text.rawSpan, into: &$0) }) else {
            return false
        }
        return digits.count >= RowShape.certainDigitCount
            || digits.count >= RowShape.likelyDigitCount && column + 1 == shape.columnCount
    }

    /// Nearly all lines are told by a letter, so that no memory is taken for their digits.
    private static func mayBeOfToken(_ byte: UInt8) -> Bool {
        switch byte {
        case 0x30...0x39, 0x41...0x46, 0x61...0x66, 0x09, 0x0d, 0x20, 0x3c, 0x3e: true
        default: false
        }
    }
}
