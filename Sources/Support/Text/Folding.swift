internal import Glibc

/// Lines of a name and its value, cut between words where a terminal ends; what is cut off goes on
/// below its value.
///
/// - Parameters:
///   - indent: The column in which values begin.
///   - columns: The terminal's width; nil where lines may be as long as they are.
package func folded(_ text: String, indent: Int, columns: Int?) -> String {
    guard let width = columns else { return text }
    let columns = max(Folding.minimumWidth, width)
    // Beside a name there has to be some room left for its value.
    let indent = columns - indent >= Folding.leastRoom ? indent : Folding.narrowIndent
    return text.split(separator: "\n", omittingEmptySubsequences: false)
        .map { Folding.lines(of: $0, indent: indent, columns: columns) }
        .joined(separator: "\n")
}

/// The same for what a descriptor leads to: a file's lines are never cut, so that programs read them.
package func folded(_ text: String, indent: Int, for descriptor: Int32) -> String {
    folded(text, indent: indent, columns: terminalSize(descriptor)?.columns)
}

/// The size of the terminal that a descriptor leads to, now; nil where there is none.
package func terminalSize(_ descriptor: Int32) -> (columns: Int, rows: Int)? {
    var size = winsize()
    // SAFETY: `size` is a local, what TIOCGWINSZ sets; ioctl keeps no address.
    guard unsafe ioctl(descriptor, UInt(TIOCGWINSZ), &size) == 0, size.ws_col > 0 else {
        return nil
    }
    return (Int(size.ws_col), size.ws_row > 0 ? Int(size.ws_row) : 24)
}

/// How lines are folded.
package enum Folding {
    /// Narrower terminals are written to as if they were as wide.
    package static let minimumWidth = 24
    static let leastRoom = 16
    static let narrowIndent = 4

    /// A word that is longer than a line stays whole: names of files are copied.
    static func lines(of line: Substring, indent: Int, columns: Int) -> String {
        assert(indent >= 0 && indent < columns, "an indented line has room for words")
        var result = ""
        var rest = line
        var room = columns
        while rest.count > room {
            // The blanks in front of a name or a value are not a place to cut.
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
        return result + rest
    }
}
