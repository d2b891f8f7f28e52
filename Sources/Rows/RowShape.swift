import BroadsideAPNs
import BroadsideSupport

/// Criteria by which a line inside quotes is recognized as a row with a device token. Such a line
/// shows that the quote was never closed.
///
/// A line is a row if its token column has a token of at least 32 digits. If the line has as many
/// fields as the header, 8 digits suffice. So ordinary text in quotes, such as an address, is not a
/// row: `1 Long Road` is not a token, `12345678` has no second field, and `2000, Antwerp` is too
/// short.
public struct RowShape: Sendable, Equatable {
    /// Separator of fields.
    let separator: UInt8
    /// Index of the token's column.
    let tokenIndex: Int
    /// Number of columns of the header.
    let columnCount: Int

    /// Number of digits that make a text a token, regardless of the other fields of the line.
    static let certainDigitCount = 32
    /// Minimum number of digits of a token in a line with all fields. Words, postal codes and house
    /// numbers have fewer.
    static let likelyDigitCount = 8
}

/// A line inside quotes, received in pieces, with the state needed to decide whether it is a row.
final class QuotedLine {
    private let shape: RowShape
    /// Index of the current field.
    private var column = 0
    /// Text of the token's field, without quotes.
    private var token: [UInt8] = []
    private var isFieldEmpty = true
    private var isInQuotes = false
    private var isBehindQuote = false

    /// Maximum length of a token's text, including blanks and brackets around its digits.
    private static let tokenLimit = 1_024

    init(_ shape: RowShape) { self.shape = shape }

    /// Starts the next line.
    func begin() {
        column = 0
        token.removeAll(keepingCapacity: true)
        isFieldEmpty = true
        isInQuotes = false
        isBehindQuote = false
    }

    /// Receives the next part of the line.
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
            // The quote opens a field, or is the second of a pair.
            isInQuotes = isFieldEmpty || isBehindQuote
            isBehindQuote = false
        }
        isFieldEmpty = false
    }

    /// Whether the received line is a row with a device token.
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

    /// Whether a byte can be part of a token's text. Nearly all lines contain a letter that can't
    /// be part of a token. These lines are rejected before memory is allocated for digits.
    private static func mayBeOfToken(_ byte: UInt8) -> Bool {
        switch byte {
        case 0x30...0x39, 0x41...0x46, 0x61...0x66, 0x09, 0x0d, 0x20, 0x3c, 0x3e: true
        default: false
        }
    }
}
