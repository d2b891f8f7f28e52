/// A place in a decoded token list at which a line starts.
public struct ListPosition: Sendable, Equatable {
    /// Bytes before it in the decoded list.
    public var byteOffset: UInt64
    /// The number of the next row, from 0.
    public var row: UInt64
    /// The line that starts here, from 1, as an editor counts.
    public var line: UInt64

    /// A position; the list's start where nothing is given.
    public init(byteOffset: UInt64 = 0, row: UInt64 = 0, line: UInt64 = 1) {
        self.byteOffset = byteOffset
        self.row = row
        self.line = line
    }
}
