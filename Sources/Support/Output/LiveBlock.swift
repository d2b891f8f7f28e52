internal import Glibc

/// The lines at the bottom of a terminal that are redrawn in place: what to write to show others, or
/// to make room for a text. Owned by the `OutputQueue` that writes to the terminal.
package struct LiveBlock {
    /// The lines on the screen.
    private(set) var lines: [String] = []
    /// Columns that each of them takes.
    private var drawn: [Int] = []

    /// Shows lines in place of those that are shown.
    mutating func drawing(_ lines: [String]) -> String {
        let size = Self.size()
        let erase = eraseSequence(columns: size.columns)
        // A block higher than the screen can't be taken back.
        self.lines = Array(lines.prefix(max(1, size.rows - 1)))
        drawn = self.lines.map(Self.columns)
        return erase + self.lines.joined(separator: "\n") + "\n"
    }

    /// Takes the lines back and leaves the cursor where the first one was.
    mutating func erasing() -> String {
        guard !drawn.isEmpty else { return "" }
        defer { (lines, drawn) = ([], []) }
        return eraseSequence(columns: Self.size().columns)
    }

    /// A terminal that became narrower shows a long line on several rows.
    private func eraseSequence(columns: Int) -> String {
        assert(columns > 0, "a terminal has columns")
        guard !drawn.isEmpty else { return "" }
        let rows = drawn.reduce(0) { $0 + max(1, ($1 + columns - 1) / columns) }
        return "\r\u{1b}[\(rows)A\u{1b}[J"
    }

    /// Visible characters: all but the escape sequences that `LiveView` makes.
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

    /// The terminal's size now; it may change at any time.
    package static func size() -> (columns: Int, rows: Int) {
        terminalSize(STDERR_FILENO) ?? (80, 24)
    }
}
