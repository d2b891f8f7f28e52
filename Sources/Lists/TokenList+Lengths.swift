package import BroadsideHygiene
import BroadsideSupport

extension TokenList {
    /// Warns about a token that is most likely two tokens, because files were joined without a line
    /// end.
    package func warn(of lengths: TokenLengths) { warn(of: lengths.glued) }

    fileprivate func warn(of glued: TokenLengths.Glued?) {
        guard let glued else { return }
        let others = glued.rows == 1 ? "" : ", and \(grouped(glued.rows - 1)) more,"
        let parts =
            glued.parts[0] == glued.parts[1]
            ? "two tokens of \(glued.parts[0])"
            : "one token of \(glued.parts[0]) and one of \(glued.parts[1])"
        standardErrorLine(
            "broadside: warning: \(name): the token on line "
                + "\(glued.line)\(others) has \(glued.digits) digits, as many as "
                + "\(parts): were files joined without a line break between them? "
                + "Write one token per line")
    }

    /// Warns if all tokens that were read are shorter than any token that Apple is known to have
    /// issued.
    package func warnOfShortTokens(_ lengths: TokenLengths) {
        guard let (digits, line) = lengths.longestIfShort else { return }
        standardErrorLine(
            "broadside: warning: \(name): the longest token, on line \(line), has \(digits) digits, but "
                + "tokens from Apple have \(TokenLengths.shortestIssued) or more: were they cut off?"
        )
    }
}

/// Lengths of the tokens in a list of devices to erase.
package struct ErasedLengths {
    private var lengths = TokenLengths()

    /// Creates empty counts.
    package init() {}

    /// Counts a token on a line.
    package mutating func note(_ digits: Int, line: UInt64) { lengths.note(digits, line: line) }

    /// Warns about tokens that are most likely two tokens or were cut off, so that their devices
    /// would not be found. Such a list is often short, so one token of a length makes it usual.
    package func warn(_ list: TokenList) {
        list.warn(of: lengths.glued(usualFactor: 1))
        list.warnOfShortTokens(lengths)
    }
}
