internal import Glibc

/// Folds lines at word boundaries. Each line consists of a name and its value; continuation lines
/// are aligned with the value.
///
/// - Parameters:
///   - indent: The column at which values begin.
///   - columns: The terminal's width; nil for no limit.
package func folded(_ text: String, indent: Int, columns: Int?) -> String {
    guard let width = columns else { return text }
    let columns = max(Folding.minimumWidth, width)
    // The value needs a minimum width next to its name.
    let indent = columns - indent >= Folding.leastRoom ? indent : Folding.narrowIndent
    return text.split(separator: "\n", omittingEmptySubsequences: false)
        .map { Folding.lines(of: $0, indent: indent, columns: columns) }
        .joined(separator: "\n")
}

/// Folds a text if the descriptor is a terminal. In a file or a pipe, lines stay whole, so that
/// programs can read them.
package func folded(_ text: String, indent: Int, for descriptor: Int32) -> String {
    folded(text, indent: indent, columns: terminalSize(descriptor)?.columns)
}

/// Returns the current size of a descriptor's terminal; nil if it is not a terminal.
package func terminalSize(_ descriptor: Int32) -> (columns: Int, rows: Int)? {
    var size = winsize()
    // SAFETY: `size` is a local variable that TIOCGWINSZ writes; ioctl keeps no address.
    guard unsafe ioctl(descriptor, UInt(TIOCGWINSZ), &size) == 0, size.ws_col > 0 else {
        return nil
    }
    return (Int(size.ws_col), size.ws_row > 0 ? Int(size.ws_row) : 24)
}

/// Folding of lines.
package enum Folding {
    /// Minimum width in columns; a narrower terminal is treated as if it had this width.
    package static let minimumWidth = 24
    static let leastRoom = 16
    static let narrowIndent = 4

    /// Returns a folded line. A word longer than a line stays whole, because file names are copied
    /// from the output.
    static func lines(of line: Substring, indent: Int, columns: Int) -> String {
        assert(indent >= 0 && indent < columns, "an indented line has room for words")
        var result = ""
        var rest = line
        var room = columns
        while rest.count > room {
            // Spaces before a name or a value are not a folding position.
            let start =
                result.isEmpty ? rest.index(rest.startIndex, offsetBy: indent) : rest.startIndex
            let end = rest.index(rest.startIndex, offsetBy: room)
            guard
                let cut = rest[start..<rest.index(after: end)].lastIndex(of: " ")
                    ?? rest[end...].firstIndex(of: " ")
            else { break }
            result += rest[..<cut] + "\n" + String(repeating: " ", count: indent)
            rest = rest[cut...].drop { $0 == " " }
            room = columns - indent
        }
        result += rest
        assert(
            result.filter { !$0.isWhitespace } == line.filter { !$0.isWhitespace },
            "a folded line keeps its words")
        return result
    }
}
