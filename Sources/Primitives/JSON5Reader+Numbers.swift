extension JSON5Reader {
    /// Reads a number and returns it in JSON's notation.
    mutating func number() throws(JSON5Error) -> String {
        let start = problem("this is not a number: fix it, or put it in quotes")
        var sign = ""
        if current == "+" || current == "-" {
            if current == "-" { sign = "-" }
            advance()
        }
        var word = ""
        while let scalar = current {
            let isExponent = word.last == "e" || word.last == "E"
            let isHexadecimal = word.hasPrefix("0x") || word.hasPrefix("0X")
            let isSign = (scalar == "+" || scalar == "-") && isExponent && !isHexadecimal
            guard Self.isIdentifierPart(scalar) || scalar == "." || isSign else { break }
            word.unicodeScalars.append(scalar)
            advance()
        }
        if word == "Infinity" || word == "NaN" { return sign + word }
        if word.hasPrefix("0x") || word.hasPrefix("0X") {
            guard let value = UInt64(word.dropFirst(2), radix: 16),
                word.utf8.allSatisfy({ $0 != 0x2b })
            else { throw start }
            return "\(sign)\(value)"
        }
        guard let decimal = Self.decimal(word) else { throw start }
        return sign + decimal
    }

    /// Returns a decimal literal in JSON's grammar, with digits on both sides of a point.
    private static func decimal(_ word: String) -> String? {
        let parts = word.split(omittingEmptySubsequences: false) { $0 == "e" || $0 == "E" }
        guard parts.count <= 2 else { return nil }
        let mantissa = parts[0].split(separator: ".", omittingEmptySubsequences: false)
        func areDigits(_ text: Substring) -> Bool {
            text.utf8.allSatisfy { $0 >= UInt8(ascii: "0") && $0 <= UInt8(ascii: "9") }
        }
        guard mantissa.count <= 2, mantissa.allSatisfy(areDigits),
            mantissa.contains(where: { !$0.isEmpty }),
            mantissa[0].utf8.count <= 1 || mantissa[0].first != "0"
        else { return nil }
        var result = mantissa[0].isEmpty ? "0" : String(mantissa[0])
        if mantissa.count == 2, !mantissa[1].isEmpty { result += ".\(mantissa[1])" }
        guard parts.count == 2 else { return result }
        var exponent = parts[1]
        if exponent.first == "+" || exponent.first == "-" { exponent = exponent.dropFirst() }
        guard !exponent.isEmpty, areDigits(exponent) else { return nil }
        return result + "e" + parts[1]
    }
}
