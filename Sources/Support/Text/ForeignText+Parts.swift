// A file's name or an option's value may begin with a combining mark. To one who looks at characters
// `=` or `/` with a mark behind it is neither, so foreign text is taken apart by scalars.

extension StringProtocol {
    /// What stands before and behind the first of these scalars; nil without one.
    package func parts(
        atFirst scalar: Unicode.Scalar
    ) -> (before: SubSequence, behind: SubSequence)? {
        guard let place = unicodeScalars.firstIndex(of: scalar) else { return nil }
        return (self[..<place], self[unicodeScalars.index(after: place)...])
    }

    /// What stands before and behind the last of these scalars; nil without one.
    package func parts(
        atLast scalar: Unicode.Scalar
    ) -> (before: SubSequence, behind: SubSequence)? {
        guard let place = unicodeScalars.lastIndex(of: scalar) else { return nil }
        return (self[..<place], self[unicodeScalars.index(after: place)...])
    }

    /// What stands between these scalars, empty pieces too.
    package func pieces(at scalar: Unicode.Scalar) -> [SubSequence] {
        var pieces: [SubSequence] = []
        var start = startIndex
        var place = start
        while place < endIndex {
            let next = unicodeScalars.index(after: place)
            if unicodeScalars[place] == scalar {
                pieces.append(self[start..<place])
                start = next
            }
            place = next
        }
        return pieces + [self[start...]]
    }

    /// Whether the text has these bytes first.
    package func starts(withBytes text: String) -> Bool { utf8.starts(with: text.utf8) }
}
