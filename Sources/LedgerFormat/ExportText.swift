internal import BroadsidePrimitives
internal import BroadsideRows
internal import BroadsideSupport

/// Buffer of fixed size for the text of an export's rows.
///
/// The constant text between values is formatted once, so that writing a row takes a dozen copies.
/// A row whose values may need quotes, escapes or repair is left to `ExportFormat.append`, which
/// alone defines the format of a row.
@safe struct ExportText: ~Copyable {
    /// Size of the memory in bytes, enough for the rows of several chunks.
    static let byteCountMax = 1 << 18
    /// Maximum length of a row in bytes. A segment can hold a token text, a reason and a topic of
    /// 255 bytes each. Each of these bytes is written as up to six bytes, and numbers and names are
    /// added.
    static let rowByteCountMax = 6_144

    // SAFETY: this value owns the `byteCountMax` bytes and frees them in `deinit`; the first
    // `count` are set.
    private let memory: UnsafeMutableRawBufferPointer
    /// Number of bytes in the text.
    private(set) var count = 0
    private var pieces: ExportPieces
    private var lines = DecimalThousands()
    private var settlements = DecimalThousands()

    init(_ pieces: consuming ExportPieces) {
        self.pieces = pieces
        // SAFETY: `count` is 0, so no byte counts as set.
        unsafe memory = .allocate(byteCount: ExportText.byteCountMax, alignment: 64)
    }

    // SAFETY: allocated in `init`, and accessed only through this value.
    deinit { unsafe memory.deallocate() }

    /// Whether one more row fits, whatever its length.
    var hasRoom: Bool { ExportText.byteCountMax - count >= ExportText.rowByteCountMax }

    /// The rows' text.
    var bytes: RawSpan {
        @_lifetime(borrow self) get {
            // SAFETY: `count` bytes are set; they change only with this value.
            let span = unsafe RawSpan(_unsafeStart: memory.baseAddress!, byteCount: count)
            return unsafe _overrideLifetime(span, borrowing: self)
        }
    }

    /// Removes the text.
    mutating func removeAll() { count = 0 }

    /// Appends finished text.
    mutating func append(_ text: [UInt8]) {
        precondition(
            text.count <= ExportText.byteCountMax - count, "a row exceeds its limit of bytes")
        // SAFETY: there is room for the text from `count` on.
        unsafe UnsafeMutableRawBufferPointer(rebasing: memory[count...]).copyBytes(from: text)
        count += text.count
    }

    /// Appends a row if all of its text can be copied unchanged.
    ///
    /// - Parameters:
    ///   - number: Number of the row.
    ///   - rowIndex: The row's index in `verdicts`; nil if no run reserved it.
    ///   - verdicts: The loaded chunk.
    ///   - listIndex: The row's index in `list`; nil if the list is unavailable.
    ///   - list: The loaded rows of the list.
    /// - Returns: Whether the row was appended.
    @inline(__always)
    mutating func appendPlain(
        row number: UInt64, at rowIndex: Int?, _ verdicts: borrowing ChunkVerdicts,
        listIndex: Int?, _ list: borrowing ListRows
    ) -> Bool {
        let verdict = if let rowIndex { verdicts.rows[rowIndex] } else { RowVerdict() }
        guard verdict.reasonText.isEmpty, pieces.hasReason(verdict.reason) else { return false }
        // The arm of an open row depends on its token.
        if pieces.hasArms, verdict.arm == 0 { return false }
        if pieces.hasTopics, !pieces.hasEnd(ofTopic: verdict.topic, verdicts) { return false }
        precondition(hasRoom)
        // SAFETY: the cursor begins behind the bytes that are set, ends with the memory, and is
        // used in this function only.
        let end = unsafe memory.baseAddress! + ExportText.byteCountMax
        var cursor = unsafe TextCursor(memory.baseAddress! + count, end: end)
        cursor.put(pieces.lineStart)
        if let listIndex {
            cursor.put(list.line(of: listIndex), after: &lines)
        } else {
            cursor.put(pieces.absent)
        }
        switch verdict.token {
        case .bytes(let range) where !range.isEmpty:
            cursor.put(pieces.tokenStart)
            cursor.putHexadecimal(verdicts.storedBytes(range))
            cursor.put(pieces.tokenEnd)
        case .text(let range) where !range.isEmpty:
            let text = verdicts.storedBytes(range)
            guard ExportText.isPlain(text), !TextExcerpt.wasCut(text) else { return false }
            cursor.put(pieces.tokenStart)
            cursor.put(text)
            cursor.put(pieces.tokenEnd)
        case .erased: return false
        default:
            if let listIndex {
                let text = list.text(of: listIndex)
                guard list.isToken(listIndex) || ExportText.isPlain(text) else { return false }
                if case .fingerprint(let fingerprint) = verdict.token,
                    ErasedToken.isErased(fingerprint, text)
                {
                    return false
                }
                cursor.put(pieces.tokenStart)
                cursor.put(text)
                cursor.put(pieces.tokenEnd)
            } else {
                cursor.put(pieces.noToken)
            }
        }
        if verdict.state == .accepted, verdict.status == 200, verdict.reason == 0,
            verdict.timestamp == nil, !pieces.acceptsBySilence
        {
            cursor.put(pieces.accepted)
        } else {
            cursor.put(pieces.states[Int(verdict.state.rawValue)])
            if verdict.status == 0 || (pieces.acceptsBySilence && verdict.state == .accepted) {
                cursor.put(pieces.absent)
            } else {
                cursor.put(decimal: UInt64(verdict.status))
            }
            cursor.put(pieces.reasons[Int(verdict.reason)])
            if let timestamp = verdict.timestamp {
                cursor.put(decimal: timestamp)
            } else {
                cursor.put(pieces.absent)
            }
            cursor.put(pieces.attemptsStart)
        }
        cursor.put(decimal: UInt64(verdict.attempts))
        cursor.put(pieces.identifierStart)
        if pieces.hasIdentifiers { cursor.putRowDigits(number) }
        cursor.put(pieces.identifierEnd)
        if verdict.state.isSettled {
            cursor.put(verdict.settledAtMilliseconds, after: &settlements)
        } else {
            cursor.put(pieces.absent)
        }
        if pieces.hasTopics, let end = pieces.topicEnds[Int(verdict.topic)] {
            cursor.put(end)
        } else {
            cursor.put(pieces.ends[Int(verdict.arm)])
        }
        // SAFETY: both are addresses in the memory.
        count = unsafe cursor.position - memory.baseAddress!
        return true
    }

    /// Whether a text needs no change in any format, apart from enclosing quotes.
    private static func isPlain(_ text: RawSpan) -> Bool {
        for offset in 0..<text.byteCount {
            switch text.byte(at: offset) {
            case 0x30...0x39, 0x41...0x5A, 0x61...0x7A, 0x20, 0x2E...0x2F, 0x3A, 0x5F: continue
            case 0x2D where offset > 0: continue
            default: return false
            }
        }
        return text.byteCount > 0
    }
}
