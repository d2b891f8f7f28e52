internal import BroadsideHPACK

extension ResponseHeaders {
    /// Decodes a block of the usual form. Such a block has only static entries and literals without
    /// insertion, and each integer in it takes one or two bytes. Returns false for any other block
    /// and for an invalid one. The full decoder then reads the block.
    ///
    /// Has the same result as `readAnything`, but builds no descriptions of fields, because
    /// building them would cost more than decoding the fields.
    mutating func readOrdinary(_ block: RawSpan) -> Bool {
        var offset = 0
        while offset < block.byteCount {
            let first = block.byte(at: offset)
            offset += 1
            if first & 0x80 != 0 {
                let index = Int(first & 0x7f)
                guard index >= 1, index <= StaticTable.count else { return false }
                takeStatic(index)
                continue
            }
            // Literals without indexing and never indexed (RFC 7541 sections 6.2.2 and 6.2.3).
            guard first & 0xe0 == 0 else { return false }
            var index = Int(first & 0x0f)
            if index == 0x0f {
                guard offset < block.byteCount else { return false }
                let rest = Int(block.byte(at: offset))
                guard rest <= StaticTable.count - 0x0f else { return false }
                index += rest
                offset += 1
            }
            var name: ShortText?
            if index == 0 {
                name = ShortText(block, &offset)
                guard name != nil else { return false }
            }
            guard let value = ShortText(block, &offset) else { return false }
            if let name, name.isIdentifierName(in: block) {
                sawRegularField = true
                identifier = value.offset..<value.offset + value.count
                isIdentifierHuffman = value.isHuffman
                if !value.isHuffman { checkValue(value.bytes(in: block)) }
                continue
            }
            do throws(HPACKError) {
                if let name {
                    try takeLiteral(
                        name.bytes(in: block), isHuffman: name.isHuffman,
                        value.bytes(in: block), isHuffmanValue: value.isHuffman)
                } else {
                    try takeNamed(
                        index, value.bytes(in: block), isHuffman: value.isHuffman)
                }
            } catch {
                return false
            }
        }
        return true
    }
}

/// String in a header block; one byte encodes its length (RFC 7541 section 5.2).
private struct ShortText {
    var offset: Int
    var count: Int
    var isHuffman: Bool

    /// Parses the string at `offset` and advances past it; nil if it is longer than 126 bytes or
    /// incomplete.
    @inline(__always)
    init?(_ block: RawSpan, _ offset: inout Int) {
        guard offset < block.byteCount else { return nil }
        let length = block.byte(at: offset)
        count = Int(length & 0x7f)
        isHuffman = length & 0x80 != 0
        self.offset = offset + 1
        guard count < 0x7f, count <= block.byteCount - self.offset else { return nil }
        offset = self.offset + count
    }

    @inline(__always)
    @_lifetime(copy block)
    func bytes(in block: RawSpan) -> RawSpan {
        block.extracting(offset..<offset + count)
    }

    /// Whether the text is `apns-id`, raw or Huffman-coded: the only literal name in an ordinary
    /// response of APNs, recognized by comparing integers.
    @inline(__always)
    func isIdentifierName(in block: RawSpan) -> Bool {
        if isHuffman {
            return count == 5 && block.uint32(at: offset) == 0x1d75_2163
                && block.byte(at: offset + 4) == 0x49
        }
        return count == 7 && block.uint32(at: offset) == 0x6170_6e73  // "apns"
            && block.uint32(at: offset + 3) == 0x732d_6964  // "s-id"
    }
}
