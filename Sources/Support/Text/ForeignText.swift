/// Text that came from elsewhere, made fit to be put into a message.
///
/// Values of options, names of files, bytes of a list and a server's words can hold anything. Shown
/// as they are, a line break would make two lines of one error, an escape sequence would move the
/// terminal's cursor, and a bidirectional control would show the text in another order than it has.
package enum ForeignText {
    /// The text with an escape for each scalar that is not a visible one: `a\nb`, `\u{1b}[2J`.
    ///
    /// Backslashes stay as they are, so that a text that was escaped before does not change.
    package static func escaped(_ text: String) -> String {
        guard text.unicodeScalars.contains(where: isInvisible) else { return text }
        var result = ""
        for scalar in text.unicodeScalars { append(scalar, to: &result) }
        return result
    }

    /// The beginning of the text: at most so many scalars, escaped.
    package static func escaped(_ text: String, limit: Int) -> String {
        var result = ""
        for scalar in text.unicodeScalars.prefix(limit) { append(scalar, to: &result) }
        return result
    }

    /// The same for a text of several lines of our own: its line feeds stay.
    package static func escapedLines(_ text: String) -> String {
        var result = ""
        for scalar in text.unicodeScalars {
            // Not by characters: to them a carriage return and a line feed are one.
            if scalar == "\n" {
                result.unicodeScalars.append(scalar)
            } else {
                append(scalar, to: &result)
            }
        }
        return result
    }

    /// Whether a scalar moves the cursor, ends a line or changes the order of what is shown.
    package static func isInvisible(_ scalar: Unicode.Scalar) -> Bool {
        switch scalar.value {
        // C0, DEL and C1.
        case 0..<0x20, 0x7f..<0xa0: true
        // Line separator and paragraph separator.
        case 0x2028, 0x2029: true
        // Unicode Standard Annex 9, section 2: marks, embeddings, overrides, isolates.
        case 0x061c, 0x200e, 0x200f, 0x202a...0x202e, 0x2066...0x2069: true
        default: false
        }
    }

    private static func append(_ scalar: Unicode.Scalar, to result: inout String) {
        guard isInvisible(scalar) else {
            result.unicodeScalars.append(scalar)
            return
        }
        switch scalar {
        case "\n": result += "\\n"
        case "\r": result += "\\r"
        case "\t": result += "\\t"
        default: result += "\\u{" + String(scalar.value, radix: 16) + "}"
        }
    }
}

/// The beginning of a text that came from elsewhere, fit to be shown.
package func printable(_ text: String, limit: Int = 200) -> String {
    ForeignText.escaped(text, limit: limit)
}
