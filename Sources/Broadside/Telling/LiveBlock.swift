import APNs
internal import Glibc
internal import Synchronization

/// The lines at the bottom of a terminal that are redrawn in place. Anything else that goes to
/// stderr makes room for itself first, whichever thread it comes from.
struct LiveBlock {
    /// Columns that each line on the screen takes.
    private var drawn: [Int] = []

    /// The process has one stderr.
    static let shared = Mutex(LiveBlock())

    /// Shows lines in place of those that stand there.
    mutating func draw(_ lines: [String]) {
        let size = Self.size()
        // A block higher than the screen can't be taken back.
        let lines = lines.prefix(max(1, size.rows - 1))
        writeToStandardError(
            eraseSequence(columns: size.columns) + lines.joined(separator: "\n") + "\n")
        drawn = lines.map(Self.columns)
    }

    /// Takes the lines back and leaves the cursor where the first one stood.
    mutating func erase() {
        guard !drawn.isEmpty else { return }
        writeToStandardError(eraseSequence(columns: Self.size().columns))
        drawn = []
    }

    /// A terminal that became narrower shows a long line on several rows.
    private func eraseSequence(columns: Int) -> String {
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
    static func size() -> (columns: Int, rows: Int) {
        terminalSize(STDERR_FILENO) ?? (80, 24)
    }
}

/// Lines of our own on stderr; nothing in them moves the cursor.
package func standardError(_ lines: String) {
    LiveBlock.shared.withLock { block in
        block.erase()
        writeToStandardError(ForeignText.escapedLines(lines) + "\n")
    }
}

/// An error or a warning on stderr: one line, whatever is in it.
package func standardErrorLine(_ line: String) { standardError(ForeignText.escaped(line)) }

private func writeToStandardError(_ text: String) {
    var text = text
    text.withUTF8 { bytes in
        var written = 0
        while written < bytes.count {
            let count = unsafe write(
                STDERR_FILENO, bytes.baseAddress! + written, bytes.count - written)
            if count < 0, errno == EINTR { continue }
            guard count > 0 else { return }
            written += count
        }
    }
}
