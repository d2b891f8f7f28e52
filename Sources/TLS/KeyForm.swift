/// Converts keys and certificates that shells, editors and secret stores have altered. Such a text
/// may be indented or in UTF-16. It may be on a single line, where its line breaks are written as
/// `\n` or are missing. The file may also be in DER, or contain the base64 of another file.
///
/// Files that OpenSSL reads directly are not processed here.
enum KeyForm {
    /// Returns a file's content in PEM (RFC 7468), or as PKCS#12 in DER; nil if it contains
    /// neither.
    static func unwrapped(_ file: [UInt8]) -> [UInt8]? { unwrapped(file, depth: 0) }

    /// Returns the labels of the PEM blocks: `PRIVATE KEY`, `CERTIFICATE`.
    static func labels(_ text: [UInt8]) -> [String] {
        var labels: [String] = []
        var offset = 0
        while let block = Block(text, from: offset) {
            labels.append(block.label)
            offset = block.bodyStart
        }
        return labels
    }

    /// Returns whether the bytes are exactly one DER structure.
    static func isDER(_ bytes: [UInt8]) -> Bool {
        guard let outer = Element(bytes, at: 0), outer.tag == Element.sequence else { return false }
        // An editor may have appended a line end.
        return bytes[outer.end...].allSatisfy { $0 == 0x0a || $0 == 0x0d } && bytes.count > 16
    }

    private static func unwrapped(_ file: [UInt8], depth: Int) -> [UInt8]? {
        if isDER(file) { return armored(file) ?? file }
        if var text = fromUTF16(file) {
            defer { text.cleanse() }
            return depth == 0 ? unwrapped(text, depth: 1) ?? text : nil
        }
        if Block(file, from: 0) != nil { return blocks(file) }
        // A file encoded more than twice is rejected.
        guard depth < 2, var decoded = base64Decoded(file[...]) else { return nil }
        defer { decoded.cleanse() }
        return unwrapped(decoded, depth: depth + 1)
    }

    // MARK: PEM

    /// A PEM block, from its BEGIN line to its END line.
    private struct Block {
        let label: String
        let bodyStart: Int
        /// Offset of the END line, or of the end of the text.
        let bodyEnd: Int
        let isClosed: Bool
        /// Whether the BEGIN line has nothing before it, such as the sign of a comment.
        let isAtLineStart: Bool

        private static let mark = Array("-----BEGIN ".utf8)
        private static let endMark = Array("-----END".utf8)
        private static let dashes = Array("-----".utf8)
        private static let labelCountMax = 64

        /// Finds the first block at or after an offset; nil if there is none.
        init?(_ text: [UInt8], from start: Int) {
            guard let mark = Self.index(of: Self.mark, in: text, from: start) else { return nil }
            let labelStart = mark + Self.mark.count
            guard let labelEnd = Self.index(of: Self.dashes, in: text, from: labelStart),
                labelEnd - labelStart <= Self.labelCountMax
            else { return nil }
            label = String(decoding: text[labelStart..<labelEnd], as: UTF8.self)
            bodyStart = labelEnd + Self.dashes.count
            let end = Self.index(of: Self.endMark, in: text, from: bodyStart)
            bodyEnd = end ?? text.count
            isClosed = end != nil
            isAtLineStart = mark == 0 || text[mark - 1] == 0x0a
        }

        private static func index(of mark: [UInt8], in text: [UInt8], from start: Int) -> Int? {
            var offset = start
            while offset + mark.count <= text.count {
                if text[offset] == mark[0], text[offset...].starts(with: mark) { return offset }
                offset += 1
            }
            return nil
        }
    }

    /// Returns all blocks of a text in standard PEM; nil if one of them is damaged, or is encrypted
    /// in the traditional format with header lines (older than PKCS#8).
    private static func blocks(_ text: [UInt8]) -> [UInt8]? {
        var result: [UInt8] = []
        result.reserveCapacity(2 * text.count + 256)
        var offset = 0
        while let block = Block(text, from: offset) {
            guard block.isClosed, var body = digits(text[block.bodyStart..<block.bodyEnd]) else {
                result.cleanse()
                return nil
            }
            append(body, label: block.label, to: &result)
            body.cleanse()
            offset = block.bodyEnd
        }
        return result
    }

    /// Limit on the private keys of a file that are compared with the first one.
    private static let furtherKeyCountMax = 7

    /// Passes the private keys after the first one to `body`, each as a PEM text, which is
    /// overwritten afterwards; nil for a key that is damaged.
    static func forEachFurtherKey(_ file: [UInt8], _ body: ([UInt8]?) -> Void) {
        // OpenSSL has read the first key even if a later block is damaged.
        var text = unwrapped(file) ?? file
        defer { text.cleanse() }
        var (offset, count) = (0, 0)
        while count <= furtherKeyCountMax, let block = Block(text, from: offset) {
            offset = block.bodyEnd
            guard block.isAtLineStart, block.label.hasSuffix("PRIVATE KEY") else { continue }
            count += 1
            guard count > 1 else { continue }
            guard var base64 = digits(text[block.bodyStart..<block.bodyEnd]) else {
                body(nil)
                continue
            }
            var key: [UInt8] = []
            key.reserveCapacity(2 * base64.count + 256)
            append(base64, label: block.label, to: &key)
            base64.cleanse()
            body(key)
            key.cleanse()
        }
    }

    private static func append(_ digits: [UInt8], label: String, to result: inout [UInt8]) {
        result += "-----BEGIN \(label)-----\n".utf8
        // This loop takes no slice of `digits`. While a slice of an array exists, overwriting the
        // array changes only a copy.
        for (index, digit) in digits.enumerated() {
            if index > 0, index % 64 == 0 { result.append(0x0a) }
            result.append(digit)
        }
        result.append(0x0a)
        result += "-----END \(label)-----\n".utf8
    }

    /// Returns the base64 digits of a text. Spaces, quotes, commas and line breaks are left out;
    /// the line breaks may be literal or escaped. Returns nil if the text contains anything else.
    private static func digits(_ text: ArraySlice<UInt8>) -> [UInt8]? {
        var digits: [UInt8] = []
        digits.reserveCapacity(text.count)
        var isEscape = false
        for byte in text {
            if isEscape {
                isEscape = false
                // `\n`, `\r`, and a line continued by a shell.
                if [0x6e, 0x72, 0x0a, 0x0d, 0x5c].contains(byte) {
                    isEscape = byte == 0x5c
                    continue
                }
                // `\/`, as written by some JSON encoders.
                guard byte == UInt8(ascii: "/") else { return nil }
            }
            switch byte {
            case 0x5c: isEscape = true
            case 0...0x20, UInt8(ascii: "\""), UInt8(ascii: "'"), UInt8(ascii: ","): continue
            case UInt8(ascii: "-"): digits.append(UInt8(ascii: "+"))
            case UInt8(ascii: "_"): digits.append(UInt8(ascii: "/"))
            case UInt8(ascii: "="): digits.append(byte)
            default:
                guard value(byte) != nil else { return nil }
                digits.append(byte)
            }
        }
        return digits.isEmpty ? nil : digits
    }

    private static func value(_ digit: UInt8) -> UInt32? {
        switch digit {
        case 0x41...0x5a: UInt32(digit) - 0x41
        case 0x61...0x7a: UInt32(digit) - 0x61 + 26
        case 0x30...0x39: UInt32(digit) - 0x30 + 52
        case UInt8(ascii: "+"): 62
        case UInt8(ascii: "/"): 63
        default: nil
        }
    }

    /// Decodes base64; nil if the text is not base64.
    private static func base64Decoded(_ text: ArraySlice<UInt8>) -> [UInt8]? {
        let mark: [UInt8] = [0xef, 0xbb, 0xbf]
        guard var digits = digits(text.starts(with: mark) ? text.dropFirst(3) : text) else {
            return nil
        }
        defer { digits.cleanse() }
        while digits.last == UInt8(ascii: "=") { digits.removeLast() }
        guard digits.count >= 32, digits.count % 4 != 1 else { return nil }
        var bytes: [UInt8] = []
        bytes.reserveCapacity(digits.count * 3 / 4 + 3)
        var bits: UInt32 = 0
        var count = 0
        for digit in digits {
            guard let value = value(digit) else { return nil }
            bits = bits << 6 | value
            count += 6
            guard count >= 8 else { continue }
            count -= 8
            bytes.append(UInt8(truncatingIfNeeded: bits >> UInt32(count)))
        }
        return bytes
    }

    /// Converts ASCII from UTF-16 with a byte order mark; nil for any other text.
    private static func fromUTF16(_ file: [UInt8]) -> [UInt8]? {
        guard file.count >= 4, file.count % 2 == 0 else { return nil }
        let high: Int
        switch (file[0], file[1]) {
        case (0xff, 0xfe): high = 1
        case (0xfe, 0xff): high = 0
        default: return nil
        }
        var text: [UInt8] = []
        text.reserveCapacity(file.count / 2)
        for start in stride(from: 2, to: file.count, by: 2) {
            guard file[start + high] == 0 else { return nil }
            text.append(file[start + 1 - high])
        }
        return text
    }

    // MARK: DER

    /// A DER element's tag and the range of its contents.
    private struct Element {
        static let sequence: UInt8 = 0x30
        static let integer: UInt8 = 0x02
        static let bitString: UInt8 = 0x03
        static let octetString: UInt8 = 0x04

        let tag: UInt8
        let start: Int
        let end: Int

        /// Parses the element at an offset; nil if there is no element, or if `bytes` ends inside
        /// the element.
        init?(_ bytes: [UInt8], at offset: Int) {
            guard offset >= 0, offset + 2 <= bytes.count else { return nil }
            tag = bytes[offset]
            var position = offset + 2
            var length = Int(bytes[offset + 1])
            if length >= 0x80 {
                let count = length & 0x7f
                guard count >= 1, count <= 3, position + count <= bytes.count else { return nil }
                length = bytes[position..<position + count].reduce(0) { $0 << 8 | Int($1) }
                position += count
            }
            guard position + length <= bytes.count else { return nil }
            start = position
            end = position + length
        }
    }

    /// Returns a DER structure in PEM; nil for PKCS#12 and for unknown structures.
    private static func armored(_ file: [UInt8]) -> [UInt8]? {
        guard let outer = Element(file, at: 0), let label = label(file, outer) else { return nil }
        var digits: [UInt8] = []
        digits.reserveCapacity(outer.end * 4 / 3 + 4)
        let alphabet = Array(
            "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/".utf8)
        for start in stride(from: 0, to: outer.end, by: 3) {
            let count = min(3, outer.end - start)
            var bits: UInt32 = 0
            for place in 0..<3 {
                bits = bits << 8 | (place < count ? UInt32(file[start + place]) : 0)
            }
            for place in 0..<4 {
                let digit = alphabet[Int(bits >> UInt32(18 - 6 * place) & 63)]
                digits.append(place <= count ? digit : UInt8(ascii: "="))
            }
        }
        defer { digits.cleanse() }
        var result: [UInt8] = []
        result.reserveCapacity(digits.count + digits.count / 64 + 128)
        append(digits, label: label, to: &result)
        return result
    }

    /// Returns the PEM label of a structure, judged by its first two elements.
    private static func label(_ file: [UInt8], _ outer: Element) -> String? {
        guard let first = Element(file, at: outer.start),
            let second = Element(file, at: first.end)
        else { return nil }
        switch (first.tag, second.tag) {
        case (Element.integer, Element.sequence):
            // Version 3 is PKCS#12 (RFC 7292, section 4); a key's is 0 or 1 (RFC 5958, section 2).
            return first.end - first.start == 1 && file[first.start] <= 1 ? "PRIVATE KEY" : nil
        case (Element.integer, Element.octetString): return "EC PRIVATE KEY"
        case (Element.integer, Element.integer): return "RSA PRIVATE KEY"
        case (Element.sequence, Element.octetString): return "ENCRYPTED PRIVATE KEY"
        case (Element.sequence, Element.bitString): return "PUBLIC KEY"
        case (Element.sequence, Element.sequence):
            return (try? Certificate(der: Array(file[..<outer.end]))) != nil
                ? "CERTIFICATE" : "CERTIFICATE REQUEST"
        default: return nil
        }
    }
}
