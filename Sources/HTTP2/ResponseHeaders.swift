internal import BroadsideHPACK

/// Part of a response's header block that its stream needs. Small, because it is copied for each
/// response whose block is cached.
struct ResponseStart: Equatable {
    /// `:status`; `Stream.identifiedStatus` for a 200 with an apns-unique-id; 0 if there is no
    /// `:status`.
    let status: UInt16
    /// `content-length`; -1 if there is none.
    let contentLength: Int32
    /// `retry-after`.
    let retryAfter: RetryAfter
    /// Cause for which the response is a stream error, see `ResponseHeaders`; nil if it is none.
    let error: StreamError?

    init(_ headers: ResponseHeaders) {
        status =
            headers.status == 200 && headers.uniqueID != nil
            ? Stream.identifiedStatus : headers.status
        contentLength = headers.contentLength
        retryAfter = headers.retryAfter
        error = headers.error
    }
}

/// Relevant values of a response's header block, and whether it is well formed (RFC 9113 sections
/// 8.2 and 8.3.2).
///
/// `read` handles each ordinary response: static entries and literals without insertion, to the end
/// of the block. Huffman-coded values that are not needed are not decoded.
struct ResponseHeaders {
    /// `:status`; 0 if there is none yet.
    private(set) var status: UInt16 = 0
    /// `content-length`; -1 if there is none.
    private(set) var contentLength: Int32 = -1
    /// `retry-after`.
    private(set) var retryAfter = RetryAfter.none
    /// `apns-unique-id`; nil if there is none.
    private(set) var uniqueID: UniqueID?
    /// First cause for which the response "MUST be treated as a stream error of type
    /// PROTOCOL_ERROR" (section 8.1.1); nil if there is none.
    private(set) var error: StreamError?
    var sawRegularField = false
    /// Range of the apns-id value in the block; nil if the block has no apns-id, or was not
    /// searched for it. If the value is Huffman-coded, `isIdentifierHuffman` is true.
    var identifier: Range<Int>?
    var isIdentifierHuffman = false

    /// Buffer size in bytes for a decoded name or number. No relevant name is longer.
    private static let decodedCount = 64

    /// Decodes all of `block`. Returns false if that needs a dynamic table; then the result is
    /// invalid.
    mutating func read(_ block: RawSpan) throws(HPACKError) -> Bool {
        var ordinary = self
        if ordinary.readOrdinary(block) {
            self = ordinary
            return true
        }
        return try readAnything(block)
    }

    /// Decodes any block with a `BlockWalker`.
    mutating func readAnything(_ block: RawSpan) throws(HPACKError) -> Bool {
        var walker = BlockWalker()
        while let field = try walker.next(block) {
            switch field.representation {
            case .indexed:
                guard field.index <= StaticTable.count else { return false }
                takeStatic(field.index)
            case .withoutIndexing, .neverIndexed:
                guard field.index <= StaticTable.count else { return false }
                let value = block.extracting(
                    field.value.offset..<field.value.offset + field.value.count)
                if field.index != 0 {
                    try takeNamed(field.index, value, isHuffman: field.value.isHuffman)
                } else {
                    let name = block.extracting(
                        field.name.offset..<field.name.offset + field.name.count)
                    try takeLiteral(
                        name, isHuffman: field.name.isHuffman, value,
                        isHuffmanValue: field.value.isHuffman)
                }
            case .incremental, .sizeUpdate:
                return false
            }
        }
        return true
    }

    /// Handles a field that is entirely a static entry.
    mutating func takeStatic(_ index: Int) {
        assert((1...StaticTable.count).contains(index), "an index of the static table")
        switch index {
        case 8: takeStatus(200)
        case 9: takeStatus(204)
        case 10: takeStatus(206)
        case 11: takeStatus(304)
        case 12: takeStatus(400)
        case 13: takeStatus(404)
        case 14: takeStatus(500)
        // The pseudo-header fields of requests, and transfer-encoding.
        case 1...7: fail(.foreignPseudoHeader)
        case 57: fail(.connectionField)
        default: sawRegularField = true
        }
    }

    /// Handles a literal whose name is a static entry.
    mutating func takeNamed(
        _ index: Int, _ value: RawSpan, isHuffman: Bool
    ) throws(HPACKError) {
        switch index {
        case 8...14:
            takeStatus(try number(value, isHuffman: isHuffman, digits: 3...3))
        case 28:
            sawRegularField = true
            takeContentLength(try number(value, isHuffman: isHuffman))
        case 53:
            sawRegularField = true
            try takeRetryAfter(value, isHuffman: isHuffman)
        case 1...7:
            fail(.foreignPseudoHeader)
        case 57:
            fail(.connectionField)
        default:
            sawRegularField = true
            if !isHuffman { checkValue(value) }
        }
    }

    /// Handles a literal with its name in the block.
    mutating func takeLiteral(
        _ name: RawSpan, isHuffman: Bool, _ value: RawSpan, isHuffmanValue: Bool
    ) throws(HPACKError) {
        if isHuffman {
            var failure: HPACKError?
            // SAFETY: only the output accesses the temporary storage, within the closure; it counts
            // the bytes that are set.
            unsafe withUnsafeTemporaryAllocation(
                byteCount: Self.decodedCount, alignment: 8
            ) { storage in
                var output = unsafe OutputRawSpan(buffer: storage, initializedCount: 0)
                do throws(HPACKError) {
                    try Huffman.decode(name, into: &output)
                    try takeField(output.bytes, value, isHuffmanValue: isHuffmanValue)
                } catch {
                    if error.code == .stringTooLong {
                        sawRegularField = true
                    } else {
                        failure = error
                    }
                }
            }
            if let failure { throw failure }
        } else {
            try takeField(name, value, isHuffmanValue: isHuffmanValue)
        }
    }

    /// Handles a field with a decoded name; also used for fields from nghttp2's decoder.
    mutating func takeField(
        _ name: RawSpan, _ value: RawSpan, isHuffmanValue: Bool = false
    ) throws(HPACKError) {
        if !isHuffmanValue { checkValue(value) }
        if name.matches(":status") {
            takeStatus(try number(value, isHuffman: isHuffmanValue, digits: 3...3))
            return
        }
        sawRegularField = true
        guard Self.isValidName(name) else {
            let isPseudo = name.byteCount > 1 && name.byte(at: 0) == UInt8(ascii: ":")
            fail(isPseudo ? .foreignPseudoHeader : .invalidName)
            return
        }
        if name.matches("content-length") {
            takeContentLength(try number(value, isHuffman: isHuffmanValue))
        } else if name.matches("retry-after") {
            try takeRetryAfter(value, isHuffman: isHuffmanValue)
        } else if name.matches("apns-unique-id") {
            try takeUniqueID(value, isHuffman: isHuffmanValue)
        } else if name.matches("connection") || name.matches("keep-alive")
            || name.matches("proxy-connection") || name.matches("transfer-encoding")
            || name.matches("upgrade")
        {
            // "Any message containing connection-specific header fields MUST be treated as
            // malformed" (section 8.2.2).
            fail(.connectionField)
        }
    }

    /// Records a cause for which the response is malformed.
    private mutating func fail(_ cause: StreamError) {
        if error == nil { error = cause }
    }

    private mutating func takeStatus(_ number: UInt32?) {
        guard let number, number >= 100 else {
            fail(.invalidStatus)
            return
        }
        takeStatus(UInt16(number))
    }

    private mutating func takeStatus(_ value: UInt16) {
        assert((100...999).contains(value), "a status has three digits")
        // `:status` may occur only once, and "all pseudo-header fields MUST appear in a field block
        // before all regular field lines" (section 8.3).
        if status != 0 {
            fail(.repeatedStatus)
        } else if sawRegularField {
            fail(.lateStatus)
        }
        status = value
    }

    private mutating func takeContentLength(_ number: UInt32?) {
        guard let number, number <= Int32.max, contentLength < 0 || contentLength == number else {
            fail(.invalidContentLength)
            return
        }
        contentLength = Int32(number)
    }

    private mutating func takeRetryAfter(_ value: RawSpan, isHuffman: Bool) throws(HPACKError) {
        guard isHuffman else {
            retryAfter = RetryAfter(value)
            return
        }
        retryAfter = .none
        try withDecoded(value) { text in retryAfter = RetryAfter(text) }
    }

    private mutating func takeUniqueID(_ value: RawSpan, isHuffman: Bool) throws(HPACKError) {
        guard isHuffman else {
            uniqueID = UniqueID(value)
            return
        }
        uniqueID = nil
        try withDecoded(value) { text in uniqueID = UniqueID(text) }
    }

    /// Checks a value: "A field value MUST NOT contain the zero value, line feed, or carriage
    /// return at any position" (section 8.2.1).
    @inline(__always)
    mutating func checkValue(_ value: RawSpan) {
        var found: UInt64 = 0
        if value.byteCount >= 8 {
            // The last word overlaps the previous one, so that no byte is left over.
            var offset = 0
            while offset < value.byteCount - 8 {
                found |= Self.forbidden(value.uint64(at: offset))
                offset += 8
            }
            found |= Self.forbidden(value.uint64(at: value.byteCount - 8))
        } else {
            for offset in 0..<value.byteCount {
                let byte = value.byte(at: offset)
                if byte == 0x00 || byte == 0x0a || byte == 0x0d { found = 1 }
            }
        }
        if found != 0 { fail(.invalidValue) }
    }

    /// Nonzero if and only if a byte of `word` must not occur in a field value.
    @inline(__always)
    private static func forbidden(_ word: UInt64) -> UInt64 {
        zeros(word) | zeros(word ^ 0x0a0a_0a0a_0a0a_0a0a) | zeros(word ^ 0x0d0d_0d0d_0d0d_0d0d)
    }

    /// Nonzero if and only if a byte of `word` is zero.
    @inline(__always)
    private static func zeros(_ word: UInt64) -> UInt64 {
        (word &- 0x0101_0101_0101_0101) & ~word & 0x8080_8080_8080_8080
    }

    /// Whether a name is valid: "A field name MUST NOT contain characters in the ranges 0x00-0x20,
    /// 0x41-0x5a, or 0x7f-0xff" (section 8.2.1). A colon is invalid, too, because only
    /// pseudo-header fields start with one.
    private static func isValidName(_ name: RawSpan) -> Bool {
        guard name.byteCount > 0 else { return false }
        for offset in 0..<name.byteCount {
            switch name.byte(at: offset) {
            case 0x00...0x20, 0x41...0x5a, 0x7f...0xff, UInt8(ascii: ":"): return false
            default: continue
            }
        }
        return true
    }

    /// Parses a decimal number; nil if `text` is not a number, or if the count of its digits is not
    /// in `digits`.
    private func number(
        _ text: RawSpan, isHuffman: Bool, digits: ClosedRange<Int> = 1...9
    ) throws(HPACKError) -> UInt32? {
        guard isHuffman else { return Self.number(text, digits: digits) }
        var number: UInt32?
        try withDecoded(text) { number = Self.number($0, digits: digits) }
        return number
    }

    /// Calls `take` with a decoded Huffman string, unless it is longer than any relevant value.
    private func withDecoded(
        _ text: RawSpan, _ take: (RawSpan) -> Void
    ) throws(HPACKError) {
        var failure: HPACKError?
        // SAFETY: only the output accesses the temporary storage, within the closure; it counts the
        // bytes that are set.
        unsafe withUnsafeTemporaryAllocation(
            byteCount: Self.decodedCount, alignment: 8
        ) { storage in
            var output = unsafe OutputRawSpan(buffer: storage, initializedCount: 0)
            do throws(HPACKError) {
                try Huffman.decode(text, into: &output)
                take(output.bytes)
            } catch {
                if error.code != .stringTooLong { failure = error }
            }
        }
        if let failure { throw failure }
    }

    static func number(_ text: RawSpan, digits: ClosedRange<Int>) -> UInt32? {
        guard digits.contains(text.byteCount) else { return nil }
        var value: UInt32 = 0
        for offset in 0..<text.byteCount {
            let digit = text.byte(at: offset) &- UInt8(ascii: "0")
            guard digit <= 9 else { return nil }
            value = value * 10 + UInt32(digit)
        }
        return value
    }
}

extension RawSpan {
    /// Whether the span equals `text`.
    fileprivate func matches(_ text: StaticString) -> Bool {
        guard byteCount == text.utf8CodeUnitCount else { return false }
        for offset in 0..<byteCount {
            // SAFETY: a static string has the stated number of bytes: `byteCount`, as checked.
            guard unsafe byte(at: offset) == text.utf8Start[offset] else { return false }
        }
        return true
    }
}
