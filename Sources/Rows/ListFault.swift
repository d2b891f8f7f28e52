/// Why it is not known any more where the rows of a list begin: what comes behind is not read.
public struct ListFault: Sendable, Equatable, Error {
    /// What is wrong.
    public enum Kind: Sendable, CaseIterable {
        /// A quote that opens a field is never closed.
        case openQuote
        /// A field in quotes has a line that is a row with a device token: its quote was never closed.
        case rowInQuotes
        /// A carriage return without a line feed, in a list whose first line does not end so.
        case loneReturn
    }

    /// What is wrong.
    public var kind: Kind
    /// The line on which the quote opens, or which has the carriage return; from 1.
    public var line: UInt64

    /// Something wrong, and the line of it.
    public init(_ kind: Kind, line: UInt64) {
        self.kind = kind
        self.line = line
    }

    /// What is wrong, and how to fix it so that the list keeps its size, which a resume compares: a
    /// sentence without a full stop.
    public var message: String {
        switch kind {
        case .openQuote:
            "line \(line) opens a quote that is never closed: close it, or put a blank in its place"
        case .rowInQuotes:
            "line \(line) opens a quote that is not closed before the next row, whose device token is "
                + "inside it: close it, or put a blank in its place"
        case .loneReturn:
            "line \(line) has a carriage return without a line feed, but the first line does not end "
                + "so: put a line feed in its place"
        }
    }
}
