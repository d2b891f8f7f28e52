/// Detection of keys and provider tokens in texts to be shown. Such a secret is in a text by
/// mistake, and readers of a message or a log must not obtain it.
package enum SecretText {
    /// Returns the text with `…` in place of each secret: the text between PEM markers, a provider
    /// token, the base64 of a key, and the password of a URL.
    package static func masked(_ text: String) -> String {
        let bytes = Array(text.utf8)
        var result: [UInt8] = []
        var offset = 0
        while let secret = firstSecret(in: bytes, from: offset, includesURLs: true) {
            assert(
                secret.lowerBound >= offset && !secret.isEmpty && secret.upperBound <= bytes.count,
                "each secret is within the rest of the text")
            result += bytes[offset..<secret.lowerBound]
            result += "…".utf8
            offset = secret.upperBound
        }
        guard offset > 0 else { return text }
        return String(decoding: result + bytes[offset...], as: UTF8.self)
    }

    /// Returns whether the text contains a key or a provider token.
    package static func isIn(_ text: String) -> Bool {
        firstSecret(in: Array(text.utf8), from: 0, includesURLs: false) != nil
    }

    /// Minimum number of base64 digits after a PEM marker for the text to count as a key.
    /// Broadside's own messages contain the marker without digits.
    private static let keyDigitsMin = 16
    /// Minimum number of base64 digits of a key: the smallest key has this many.
    private static let blobDigitsMin = 64
    private static let mark = Array("BEGIN ".utf8)
    private static let endMark = Array("-----END ".utf8)
    private static let dashes = Array("-----".utf8)
    /// The first characters of a base64 text that contains a key in DER, which starts with a
    /// SEQUENCE.
    private static let blobMarks = [
        Array("MIG".utf8), Array("MIH".utf8), Array("MIE".utf8), Array("MII".utf8),
        Array("MC4".utf8), Array("MHc".utf8), Array("MHQ".utf8),
    ]
    /// The first characters of a base64 text that contains a key in PEM, which starts with a marker.
    private static let armorMark = Array("LS0tLS1CRUdJTi".utf8)
    private static let tokenMark = Array("eyJ".utf8)
    private static let urlMark = Array("://".utf8)
    /// Characters that end the part of a URL with user, password and host, or the URL.
    private static let urlEnds = Array("/?#\"'<>".utf8)

    /// - Parameter includesURLs: Whether the password of a URL counts as a secret.
    private static func firstSecret(
        in text: [UInt8], from start: Int, includesURLs: Bool
    ) -> Range<Int>? {
        for offset in start..<max(start, text.count) {
            switch text[offset] {
            case UInt8(ascii: "-"):
                // Only at the start of a run of dashes, which may be long.
                if offset > start, text[offset - 1] == UInt8(ascii: "-") { continue }
                if let end = endOfArmor(text, offset) { return offset..<end }
            case UInt8(ascii: ":") where includesURLs:
                if let password = passwordOfURL(text, offset) { return password }
            case UInt8(ascii: "M"), UInt8(ascii: "L"), UInt8(ascii: "e"):
                // Not within a word, such as the name of a directory.
                if offset > 0, isLetterOrNumber(text[offset - 1]) { continue }
                if let end = endOfBlob(text, offset) ?? endOfToken(text, offset) {
                    return offset..<end
                }
            default: continue
            }
        }
        return nil
    }

    private static func starts(_ text: [UInt8], at offset: Int, with mark: [UInt8]) -> Bool {
        text[offset...].starts(with: mark)
    }

    /// Returns the end of a text that begins with a PEM marker; nil if no key follows the marker.
    private static func endOfArmor(_ text: [UInt8], _ start: Int) -> Int? {
        // A marker begins with five dashes; two of them are missing if it was read as an option's
        // name.
        var offset = start + digits(text, start) { $0 == UInt8(ascii: "-") }
        guard offset - start >= 2, starts(text, at: offset, with: mark) else { return nil }
        offset += mark.count
        // `PRIVATE KEY` and its dashes.
        while offset < text.count, isUpperCase(text[offset]) || text[offset] == 0x20 { offset += 1 }
        while offset < text.count, text[offset] == UInt8(ascii: "-") { offset += 1 }
        // Line breaks, literal or escaped.
        while offset < text.count {
            if text[offset] == UInt8(ascii: "\\") {
                offset += 2
            } else if text[offset] <= 0x20 {
                offset += 1
            } else {
                break
            }
        }
        guard offset < text.count, digits(text, offset, isDigit) >= keyDigitsMin else { return nil }
        while offset < text.count {
            if starts(text, at: offset, with: endMark) {
                offset += endMark.count
                while offset < text.count, !starts(text, at: offset, with: dashes) { offset += 1 }
                return min(text.count, offset + dashes.count)
            }
            offset += 1
        }
        return text.count
    }

    /// Returns the end of the base64 of a key that begins at `start`; nil if none begins there.
    private static func endOfBlob(_ text: [UInt8], _ start: Int) -> Int? {
        let isArmor = starts(text, at: start, with: armorMark)
        guard isArmor || blobMarks.contains(where: { starts(text, at: start, with: $0) }) else {
            return nil
        }
        let count = digits(text, start, isDigit)
        guard count >= blobDigitsMin, isArmor || isDER(text[start..<start + 8]) else { return nil }
        return start + count
    }

    /// Returns whether a SEQUENCE in DER begins with the version of a key, which is an INTEGER, or
    /// with another SEQUENCE. The path of a folder such as `MIGRATION` does not.
    ///
    /// - Parameter digits: The first 8 digits of its base64.
    private static func isDER(_ digits: ArraySlice<UInt8>) -> Bool {
        precondition(digits.count == 8, "8 digits are 6 bytes")
        let bits = digits.reduce(0 as UInt64) { $0 << 6 | value(ofDigit: $1) }
        func byte(_ index: Int) -> UInt64 { bits >> (40 - 8 * UInt64(index)) & 0xff }
        // A length from 128 on follows its number of bytes.
        let offset = byte(1) < 0x80 ? 2 : 2 + Int(byte(1) & 0x7f)
        return offset < 6 && (byte(offset) == 0x02 || byte(offset) == 0x30)
    }

    private static func value(ofDigit byte: UInt8) -> UInt64 {
        switch byte {
        case UInt8(ascii: "A")...UInt8(ascii: "Z"): UInt64(byte - UInt8(ascii: "A"))
        case UInt8(ascii: "a")...UInt8(ascii: "z"): UInt64(byte - UInt8(ascii: "a")) + 26
        case UInt8(ascii: "0")...UInt8(ascii: "9"): UInt64(byte - UInt8(ascii: "0")) + 52
        default: byte == UInt8(ascii: "+") ? 62 : 63
        }
    }

    /// Returns the end of the provider token that begins at `start`; nil if none begins there. A
    /// token has three base64url parts, separated by dots.
    private static func endOfToken(_ text: [UInt8], _ start: Int) -> Int? {
        guard starts(text, at: start, with: tokenMark) else { return nil }
        var offset = start
        for part in 0..<3 {
            let count = digits(text, offset, isURLDigit)
            guard count >= keyDigitsMin else { return nil }
            offset += count
            guard part < 2 else { return offset }
            guard offset < text.count, text[offset] == UInt8(ascii: ".") else { return nil }
            offset += 1
        }
        return nil
    }

    /// Returns the password of a URL whose scheme ends at `start`, as in `://USER:PASSWORD@`; nil if
    /// there is none, or if the text only names a variable that contains it.
    private static func passwordOfURL(_ text: [UInt8], _ start: Int) -> Range<Int>? {
        guard starts(text, at: start, with: urlMark) else { return nil }
        let authority = text[(start + urlMark.count)...].prefix { byte in
            byte > 0x20 && !urlEnds.contains(byte)
        }
        guard let at = authority.lastIndex(of: UInt8(ascii: "@")),
            let colon = authority[..<at].firstIndex(of: UInt8(ascii: ":")), colon + 1 < at,
            !isVariable(authority[(colon + 1)..<at])
        else { return nil }
        return colon + 1..<at
    }

    /// Returns whether a password is only the name of a shell's variable, as in `$PASSWORD` or
    /// `${password}`. Such a name does not begin with a digit. Without braces, it has no lower-case
    /// letters, because a password may begin with `$`, too.
    private static func isVariable(_ password: ArraySlice<UInt8>) -> Bool {
        guard password.first == UInt8(ascii: "$") else { return false }
        var name = password.dropFirst()
        let isInBraces = name.first == UInt8(ascii: "{") && name.last == UInt8(ascii: "}")
        if isInBraces { name = name.dropFirst().dropLast() }
        guard let first = name.first, !isNumber(first) else { return false }
        return name.allSatisfy {
            isUpperCase($0) || isNumber($0) || $0 == UInt8(ascii: "_")
                || isInBraces && isLetterOrNumber($0)
        }
    }

    private static func digits(
        _ text: [UInt8], _ start: Int, _ isDigit: (UInt8) -> Bool
    ) -> Int {
        text[start...].prefix { isDigit($0) }.count
    }

    private static func isUpperCase(_ byte: UInt8) -> Bool { (0x41...0x5a).contains(byte) }

    private static func isNumber(_ byte: UInt8) -> Bool { (0x30...0x39).contains(byte) }

    private static func isLetterOrNumber(_ byte: UInt8) -> Bool {
        isUpperCase(byte) || (0x61...0x7a).contains(byte) || isNumber(byte)
    }

    private static func isDigit(_ byte: UInt8) -> Bool {
        isLetterOrNumber(byte) || Array("+/=".utf8).contains(byte)
    }

    private static func isURLDigit(_ byte: UInt8) -> Bool {
        isLetterOrNumber(byte) || Array("-_=".utf8).contains(byte)
    }
}
