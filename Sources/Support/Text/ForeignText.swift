/// Escaping of text from external sources for messages.
///
/// Option values, file names, bytes of a list and a server's texts can contain anything. If they
/// were shown verbatim, a line break would split one error into two lines, an escape sequence would
/// move the terminal's cursor, and a bidirectional control would reorder the text.
package enum ForeignText {
    /// Returns the text with an escape for each invisible scalar: `a\nb`, `\u{1b}[2J`.
    ///
    /// Backslashes are unchanged, so that escaping is idempotent.
    package static func escaped(_ text: String) -> String {
        guard text.unicodeScalars.contains(where: isInvisible) else { return text }
        var result = ""
        for scalar in text.unicodeScalars { append(scalar, to: &result) }
        return result
    }

    /// Returns the beginning of the text, at most the given number of scalars, escaped and without
    /// secrets.
    package static func escaped(_ text: String, limit: Int) -> String {
        // The password of a URL is recognized by the host behind it, which may be cut off.
        let longer = text.unicodeScalars.prefix(
            min(limit, .max - secretCountMax) + secretCountMax)
        let masked = SecretText.masked(String(String.UnicodeScalarView(longer)))
        var result = ""
        for scalar in masked.unicodeScalars.prefix(limit) { append(scalar, to: &result) }
        return result
    }

    /// Maximum length of a secret that begins in a text's shown part and ends behind it.
    private static let secretCountMax = 512

    /// Returns a name with an escape for each invisible scalar. Joiners and unusual blanks also
    /// count as invisible. They are useful in sentences and emoji, but in names they make two
    /// different names look alike.
    package static func escapedName(_ name: String) -> String {
        var result = ""
        for scalar in name.unicodeScalars {
            let category = scalar.properties.generalCategory
            let isHidden = category == .format || category == .spaceSeparator && scalar != " "
            append(scalar, to: &result, isEscaped: isHidden || isInvisible(scalar))
        }
        return result
    }

    /// Escapes a text of several lines and keeps its line feeds.
    package static func escapedLines(_ text: String) -> String {
        var result = ""
        for scalar in text.unicodeScalars {
            // By scalars, because a carriage return and a line feed form one character.
            if scalar == "\n" {
                result.unicodeScalars.append(scalar)
            } else {
                append(scalar, to: &result)
            }
        }
        return result
    }

    /// Returns whether a scalar moves the cursor, ends a line or changes the display order.
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
        append(scalar, to: &result, isEscaped: isInvisible(scalar))
    }

    private static func append(
        _ scalar: Unicode.Scalar, to result: inout String, isEscaped: Bool
    ) {
        guard isEscaped else {
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

/// Returns the beginning of a text from an external source, escaped for display and without secrets.
package func printable(_ text: String, limit: Int = 200) -> String {
    ForeignText.escaped(text, limit: limit)
}
