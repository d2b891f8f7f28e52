/// Position of a line's start in a decoded token list.
public struct ListPosition: Sendable, Equatable {
    /// Number of bytes before the position in the decoded list.
    public var byteOffset: UInt64
    /// Number of the next row, from 0.
    public var row: UInt64
    /// Number of the line that starts here, from 1, as in an editor.
    public var line: UInt64

    /// Creates a position; by default the list's start.
    public init(byteOffset: UInt64 = 0, row: UInt64 = 0, line: UInt64 = 1) {
        self.byteOffset = byteOffset
        self.row = row
        self.line = line
    }
}
