/// Fault of a list after which it is unknown where rows begin. Rows after the fault are not read.
public struct ListFault: Sendable, Equatable, Error {
    /// Kind of the fault.
    public enum Kind: Sendable, CaseIterable {
        /// A quote that opens a field is never closed.
        case openQuote
        /// A field in quotes contains a line that is itself a row with a device token. So the quote
        /// was meant to be closed before that line.
        case rowInQuotes
        /// A carriage return without a line feed, in a list whose first line does not end with a
        /// carriage return.
        case loneReturn
    }

    /// Kind of the fault.
    public var kind: Kind
    /// Line with the opening quote or the carriage return, from 1.
    public var line: UInt64

    /// Creates a fault on a line.
    public init(_ kind: Kind, line: UInt64) {
        self.kind = kind
        self.line = line
    }

    /// Message that describes the fault and how to fix it: a sentence without a full stop. The fix
    /// keeps the list's size, which a resume compares.
    public var message: String {
        switch kind {
        case .openQuote:
            "line \(line) opens a quote that is never closed: close it, or "
                + "replace it with a space"
        case .rowInQuotes:
            "line \(line) opens a quote that is probably not closed before the next row, because a "
                + "device token is inside the quotes: close the quote, or replace it with a space; if "
                + "the quotes are correct, replace line feeds and carriage returns between them with "
                + "spaces"
        case .loneReturn:
            "line \(line) has a carriage return without a line feed, but the first line does not end "
                + "with a carriage return: replace the carriage return with a line feed"
        }
    }
}
