/// Finds complete frames in the input.
///
///     input   [frame][frame][fra          -> the first two are read where they are
///     carry                 [fra]         -> kept until the next input brings the rest
///     input   [me][frame]...
///
/// The carry is a buffer for a frame that is split over two inputs. Only such a frame is copied, so
/// the carry has the size of the largest permitted frame.
@safe struct FrameReader: ~Copyable {
    /// Largest permitted payload: the initial SETTINGS_MAX_FRAME_SIZE (RFC 9113 section 6.5.2),
    /// because we announce no other value.
    static let maxPayloadCount = 16_384

    /// Result of a search.
    enum Found {
        /// No complete frame; the input is consumed.
        case nothing
        /// A frame whose payload starts at `payloadOffset` of the input.
        case inInput(FrameHeader, payloadOffset: Int)
        /// A frame whose payload is in the carry, valid until the next call.
        case inCarry(FrameHeader)
        /// A frame larger than permitted.
        case tooLarge(FrameHeader)
    }

    // SAFETY: `init` allocates room for a header and the largest payload, `deinit` frees it; the
    // first `carryCount` bytes are set.
    private let carry: UnsafeMutableRawPointer
    private var carryCount = 0

    init() {
        // SAFETY: no byte is read before `fill` has set it: `carryCount` is 0.
        unsafe carry = .allocate(
            byteCount: FrameHeader.byteCount + Self.maxPayloadCount, alignment: 8)
    }

    // SAFETY: accessed only through this value; bytes need no deinitialization.
    deinit { unsafe carry.deallocate() }

    /// Start of the payload of a frame in the carry.
    var carriedPayload: UnsafeRawPointer {
        // SAFETY: `carry` is longer than a header.
        unsafe UnsafeRawPointer(carry + FrameHeader.byteCount)
    }

    /// Finds the next frame of `bytes` from `offset` on and advances `offset` past it.
    @inline(__always)
    mutating func next(in bytes: RawSpan, at offset: inout Int) -> Found {
        let available = bytes.byteCount - offset
        assert(available >= 0, "the offset is in the input")
        guard carryCount == 0, available >= FrameHeader.byteCount else {
            return nextTorn(in: bytes, at: &offset)
        }
        let header = FrameHeader(bytes, at: offset)
        guard header.length <= Self.maxPayloadCount else { return .tooLarge(header) }
        guard available - FrameHeader.byteCount >= header.length else {
            return nextTorn(in: bytes, at: &offset)
        }
        let payloadOffset = offset + FrameHeader.byteCount
        offset = payloadOffset + header.length
        return .inInput(header, payloadOffset: payloadOffset)
    }

    /// Finds a frame that is split over several inputs.
    private mutating func nextTorn(in bytes: RawSpan, at offset: inout Int) -> Found {
        fill(upTo: FrameHeader.byteCount, from: bytes, at: &offset)
        guard carryCount >= FrameHeader.byteCount else { return .nothing }
        // SAFETY: at least a header of the carry is set; the span does not outlive this call.
        let start = unsafe RawSpan(_unsafeStart: carry, byteCount: FrameHeader.byteCount)
        let header = FrameHeader(start, at: 0)
        guard header.length <= Self.maxPayloadCount else { return .tooLarge(header) }
        fill(upTo: FrameHeader.byteCount + header.length, from: bytes, at: &offset)
        guard carryCount == FrameHeader.byteCount + header.length else { return .nothing }
        carryCount = 0
        return .inCarry(header)
    }

    /// Copies input until the carry has `count` bytes or the input ends.
    private mutating func fill(upTo count: Int, from bytes: RawSpan, at offset: inout Int) {
        let taken = min(count - carryCount, bytes.byteCount - offset)
        guard taken > 0 else { return }
        precondition(offset >= 0, "the input has no bytes before its first")
        // SAFETY: `count` is at most a header and the largest payload, which is what `carry` has;
        // the source range is within `bytes`, as checked.
        unsafe bytes.withUnsafeBytes { source in
            unsafe (carry + carryCount).copyMemory(
                from: source.baseAddress.unsafelyUnwrapped + offset, byteCount: taken)
        }
        carryCount += taken
        offset += taken
    }
}
