import BroadsideRows
package import BroadsideSupport

extension TokenList {
    /// Number of bytes at the end of the list that are compared.
    private static let endByteCount: UInt64 = 16_384

    /// Warns if the last row was probably cut off, because a disk was full or a copy was
    /// interrupted. Such a row has no line end, and fewer fields or digits than the row before. The
    /// row is sent: nothing proves that it is incomplete.
    ///
    /// Only an uncompressed list can be checked. The end of a compressed list has a checksum.
    package func warnOfCutEnd() throws(BroadsideError) {
        guard isCutByBytes, let byteCount, byteCount > 0 else { return }
        let start = byteCount - min(byteCount, Self.endByteCount)
        var buffer = ReadBuffer(byteCount: Int(byteCount - start))
        try read(at: start, into: &buffer)
        guard let problem = problem(ofEnd: [UInt8](buffer.bytes)) else { return }
        standardErrorLine(
            "broadside: warning: \(name): the last row has no line end and \(problem): was the file cut "
                + "off? Other rows may be missing, too")
    }

    /// Description of an incomplete last row; nil if the row seems complete.
    private func problem(ofEnd text: [UInt8]) -> String? {
        let lines = text.split(separator: UInt8(ascii: "\n"), omittingEmptySubsequences: false)
        guard let last = lines.last, !last.isEmpty else { return nil }
        if last.contains(0) { return "contains zero bytes" }
        // The first line of the text may be incomplete. The list's first line may be a header.
        guard lines.count > 3 else { return nil }
        let before = lines[lines.count - 2]
        guard let separator = format.separator else {
            guard format == .lines, let digits = Self.digits(last), let usual = Self.digits(before)
            else { return nil }
            return digits < usual ? "fewer digits than the row before" : nil
        }
        // A field in quotes may have line breaks and separators.
        guard !text.contains(UInt8(ascii: "\"")) else { return nil }
        let (fields, usual) = (last.split(separator), before.split(separator))
        if fields.count < usual.count { return "fewer fields than the row before" }
        guard let index = layout.tokenIndex, index < fields.count, index == usual.count - 1,
            let digits = Self.digits(fields[index]), let usualDigits = Self.digits(usual[index])
        else { return nil }
        return digits < usualDigits ? "fewer digits than the row before" : nil
    }

    /// Number of hexadecimal digits of a token; nil if the text has other characters.
    private static func digits(_ text: ArraySlice<UInt8>) -> Int? {
        let token = text.filter { $0 != UInt8(ascii: "\r") && $0 != UInt8(ascii: " ") }
        return token.allSatisfy { Unicode.Scalar($0).properties.isASCIIHexDigit }
            ? token.count : nil
    }
}

extension ArraySlice<UInt8> {
    fileprivate func split(_ separator: UInt8) -> [ArraySlice<UInt8>] {
        split(separator: separator, omittingEmptySubsequences: false)
    }
}
