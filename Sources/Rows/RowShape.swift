import BroadsideAPNs
import BroadsideSupport

/// Criteria by which a line inside quotes is recognized as a row with a device token. Such a line
/// shows that the quote was never closed.
///
/// A line is a row if its token column has a token of at least 32 digits. If the line has as many
/// fields as the header, 8 digits suffice. So ordinary text in quotes, such as an address, is not a
/// row: `1 Long Road` is not a token, `12345678` has no second field, and `2000, Antwerp` is too
/// short.
///
/// The first line inside quotes is also a row if it is one together with the fields before the
/// quote. Then only a token of at least 32 digits counts, and the row has at most the fields of the
/// header. So a contact such as `Max, 12345678` is not a row, whatever its column is. A quote that
/// opens the token's field is an exception: several lines in that field are a token that is not
/// valid, and other rows are not affected.
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

/// The index of the current field of a text that is received in pieces. Separators inside quotes do
/// not count.
struct FieldCounter {
    /// Number of separators so far.
    private(set) var index = 0
    private var isFieldEmpty = true
    private var isInQuotes = false
    private var isBehindQuote = false

    /// Receives the next byte. Returns whether it is part of a field's text: neither a separator
    /// nor a quote.
    mutating func take(_ byte: UInt8, separator: UInt8) -> Bool {
        if byte == UInt8(ascii: "\"") {
            takeQuote()
            return false
        }
        isBehindQuote = false
        if byte == separator, !isInQuotes {
            index += 1
            isFieldEmpty = true
            return false
        }
        isFieldEmpty = false
        return true
    }

    private mutating func takeQuote() {
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
}

/// A line inside quotes, received in pieces, with the state needed to decide whether it is a row.
final class QuotedLine {
    private let shape: RowShape
    private var fields = FieldCounter()
    /// Text of the token's field, without quotes, if the line is a row of its own.
    private var token: [UInt8] = []
    /// Number of fields of the row before the quote, if this line follows the quote and the token's
    /// field is behind the quoted field; otherwise 0.
    private var fieldsBefore = 0
    /// Text of the token's field, without quotes, if the line and the fields before the quote are a
    /// row.
    private var tokenBehind: [UInt8] = []

    /// Maximum length of a token's text, including blanks and brackets around its digits.
    private static let tokenLimit = 1_024

    init(_ shape: RowShape) { self.shape = shape }

    /// Starts the next line.
    ///
    /// - Parameter fieldCount: Number of fields of the row before the quote, if the line follows
    ///   the quote; otherwise 0.
    func begin(behind fieldCount: Int) {
        fields = FieldCounter()
        token.removeAll(keepingCapacity: true)
        tokenBehind.removeAll(keepingCapacity: true)
        fieldsBefore = fieldCount < shape.tokenIndex ? fieldCount : 0
    }

    /// Receives the next part of the line.
    func take(_ text: RawSpan, from start: Int, to end: Int) {
        for offset in start..<max(start, end) {
            let byte = text.byte(at: offset)
            guard fields.take(byte, separator: shape.separator) else { continue }
            if fields.index == shape.tokenIndex {
                if token.count <= Self.tokenLimit { token.append(byte) }
            } else if fieldsBefore > 0, fieldsBefore + fields.index == shape.tokenIndex {
                if tokenBehind.count <= Self.tokenLimit { tokenBehind.append(byte) }
            }
        }
    }

    /// Whether the received line is a row with a device token.
    var isRow: Bool {
        let count = Self.digitCount(token)
        if count >= RowShape.certainDigitCount { return true }
        if count >= RowShape.likelyDigitCount, fields.index + 1 == shape.columnCount { return true }
        return fieldsBefore + fields.index < shape.columnCount
            && Self.digitCount(tokenBehind) >= RowShape.certainDigitCount
    }

    /// Number of digits of a token; 0 if the text is not a token.
    private static func digitCount(_ text: [UInt8]) -> Int {
        guard text.count <= tokenLimit, text.count >= RowShape.likelyDigitCount,
            text.allSatisfy(mayBeOfToken)
        else { return 0 }
        var digits = TokenDigits()
        return digits.write({ TokenText.canonicalize(text.rawSpan, into: &$0) }) ? digits.count : 0
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
