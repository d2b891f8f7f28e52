internal import Glibc

/// The lines at the bottom of a terminal that are redrawn in place. The methods return the output
/// that replaces or erases the lines. The `OutputQueue` that writes to the terminal owns this
/// value.
package struct LiveBlock {
    /// The lines currently on the screen.
    private(set) var lines: [String] = []
    /// The width of each line in columns.
    private var drawn: [Int] = []

    /// Returns the output that replaces the current lines.
    mutating func drawing(_ lines: [String]) -> String {
        let size = Self.size()
        assert(!lines.contains { $0.utf8.contains(0x0a) }, "each line of the block is one line")
        let erase = eraseSequence(columns: size.columns)
        // A block taller than the screen could not be erased.
        self.lines = Array(lines.prefix(max(1, size.rows - 1)))
        drawn = self.lines.map(Self.columns)
        return erase + self.lines.joined(separator: "\n") + "\n"
    }

    /// Returns the output that erases the lines and leaves the cursor at the position of the first
    /// line.
    mutating func erasing() -> String {
        guard !drawn.isEmpty else { return "" }
        defer { (lines, drawn) = ([], []) }
        return eraseSequence(columns: Self.size().columns)
    }

    /// Returns the escape sequence that erases the block. If the terminal has become narrower, a
    /// long line occupies several rows.
    private func eraseSequence(columns: Int) -> String {
        assert(columns > 0, "a terminal has columns")
        guard !drawn.isEmpty else { return "" }
        let rows = drawn.reduce(0) { $0 + max(1, ($1 + columns - 1) / columns) }
        return "\r\u{1b}[\(rows)A\u{1b}[J"
    }

    /// Returns the number of visible characters, excluding the escape sequences produced by
    /// `LiveView`.
    private static func columns(_ line: String) -> Int {
        var count = 0
        var isEscape = false
        for character in line {
            if character == "\u{1b}" {
                isEscape = true
            } else if isEscape {
                if character == "m" { isEscape = false }
            } else {
                count += 1
            }
        }
        return count
    }

    /// Returns the current size of the terminal, which may change at any time.
    package static func size() -> (columns: Int, rows: Int) {
        terminalSize(STDERR_FILENO) ?? (80, 24)
    }
}
