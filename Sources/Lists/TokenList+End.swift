import BroadsideRows
package import BroadsideSupport

extension TokenList {
    /// Number of bytes at the end of the list that are compared.
    private static let endByteCount: UInt64 = 16_384

    /// Warns if the last row was probably cut off, because a disk was full or a copy was
    /// interrupted. Such a row has no line end, and fewer fields or digits than each of the rows
    /// before. The row is sent: nothing proves that it is incomplete.
    ///
    /// Only an uncompressed list whose end is known is checked. The end of a compressed list has a
    /// checksum.
    package func warnOfCutEnd() throws(BroadsideError) {
        guard bytes.compression == nil, let byteCount, byteCount > 0 else { return }
        let start = byteCount - min(byteCount, Self.endByteCount)
        var buffer = ReadBuffer(byteCount: Int(byteCount - start))
        try read(at: start, into: &buffer)
        guard let problem = problem(ofEnd: [UInt8](buffer.bytes)) else { return }
        standardErrorLine(
            "broadside: warning: \(name): the last row has no line end and \(problem): was the list cut "
                + "off? Other rows may be missing, too")
    }

    /// Description of an incomplete last row; nil if the row seems complete.
    private func problem(ofEnd text: [UInt8]) -> String? {
        let lines = text.split(separator: UInt8(ascii: "\n"), omittingEmptySubsequences: false)
        guard let last = lines.last, !last.isEmpty else { return nil }
        if last.contains(0) { return "contains zero bytes" }
        // The first line of the text may be incomplete, or the list's header.
        let before = lines.dropFirst().dropLast().filter { !$0.isEmpty }
        guard let separator = format.separator else {
            guard format == .lines else { return nil }
            return Self.isShorter(last, than: before) ? "fewer digits than the rows before" : nil
        }
        // A field in quotes may have line breaks and separators.
        guard !text.contains(UInt8(ascii: "\"")) else { return nil }
        let (fields, others) = (last.split(separator), before.map { $0.split(separator) })
        guard let fewest = others.map(\.count).min() else { return nil }
        if fields.count < fewest { return "fewer fields than the rows before" }
        // Only a token in the last field can be cut off without a loss of fields.
        guard let index = layout.tokenIndex, index == fields.count - 1 else { return nil }
        return Self.isShorter(
            fields[index], than: others.compactMap { index < $0.count ? $0[index] : nil })
            ? "fewer digits than the rows before" : nil
    }

    /// Whether a token is shorter than all others. An app may have tokens of several lengths.
    private static func isShorter(
        _ token: ArraySlice<UInt8>, than others: some Sequence<ArraySlice<UInt8>>
    ) -> Bool {
        guard let count = digits(token), let fewest = others.compactMap(digits).min() else {
            return false
        }
        return count < fewest
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
