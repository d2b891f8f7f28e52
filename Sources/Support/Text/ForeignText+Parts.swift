// A file name or an option's value may begin with a combining mark. If such a mark follows `=` or
// `/`, the two form one character, which equals neither `=` nor `/`. Foreign text is therefore
// split by scalars.

extension StringProtocol {
    /// Returns the parts before and after the first occurrence of a scalar; nil if there is none.
    package func parts(
        atFirst scalar: Unicode.Scalar
    ) -> (before: SubSequence, behind: SubSequence)? {
        guard let index = unicodeScalars.firstIndex(of: scalar) else { return nil }
        return (self[..<index], self[unicodeScalars.index(after: index)...])
    }

    /// Returns the parts before and after the last occurrence of a scalar; nil if there is none.
    package func parts(
        atLast scalar: Unicode.Scalar
    ) -> (before: SubSequence, behind: SubSequence)? {
        guard let index = unicodeScalars.lastIndex(of: scalar) else { return nil }
        return (self[..<index], self[unicodeScalars.index(after: index)...])
    }

    /// Returns the parts between occurrences of the scalar, including empty ones.
    package func pieces(at scalar: Unicode.Scalar) -> [SubSequence] {
        var pieces: [SubSequence] = []
        var start = startIndex
        var index = start
        while index < endIndex {
            let next = unicodeScalars.index(after: index)
            if unicodeScalars[index] == scalar {
                pieces.append(self[start..<index])
                start = next
            }
            index = next
        }
        return pieces + [self[start...]]
    }

    /// Returns whether the text begins with the bytes of another text.
    package func starts(withBytes text: String) -> Bool { utf8.starts(with: text.utf8) }
}
