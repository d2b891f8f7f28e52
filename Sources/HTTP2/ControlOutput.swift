/// The control frames of the connection, in order, until the caller takes them.
///
/// The capacity is fixed. A peer that requests replies without reading them fills this storage,
/// which is an error of the peer (RFC 9113 section 10.5). The last bytes are reserved for the
/// GOAWAY that reports this error.
@safe struct ControlOutput: ~Copyable {
    /// Bytes reserved for a GOAWAY: header, two fields and message.
    static let reserve = 160

    // SAFETY: `init` allocates it, `deinit` frees it; `start..<end` is set, and `end` stays within.
    private let storage: UnsafeMutableRawBufferPointer
    private var start = 0
    private var end = 0
    /// Whether a frame was dropped because it did not fit.
    private(set) var isOverrun = false

    init(capacity: Int) {
        precondition(capacity >= 4 * Self.reserve, "room for the first frames and a GOAWAY")
        // SAFETY: no byte is read before it is set: nothing waits yet.
        unsafe storage = .allocate(byteCount: capacity, alignment: 8)
    }

    // SAFETY: accessed only through this value; bytes need no deinitialization.
    deinit { unsafe storage.deallocate() }

    /// Number of waiting bytes.
    var count: Int { end - start }

    /// Moves waiting bytes to the end of `output`, until it is full or no byte waits.
    mutating func take(into output: inout OutputRawSpan) {
        let taken = min(count, output.freeCapacity)
        assert(start <= end, "what was taken was there")
        for offset in start..<start + taken {
            // SAFETY: `start..<end` is set, and is within the storage.
            unsafe output.append(storage.load(fromByteOffset: offset, as: UInt8.self))
        }
        start += taken
        if start == end {
            start = 0
            end = 0
        }
    }

    /// Reserves storage for a frame with `length` payload bytes and writes its header; returns
    /// false if the storage is full.
    mutating func begin(
        _ type: FrameType, flags: FrameFlags = [], streamID: UInt32 = 0, length: Int
    ) -> Bool {
        assert(length >= 0 && streamID >> 31 == 0, "the frame header can be written")
        let size = FrameHeader.byteCount + length
        // SAFETY: the waiting bytes are within the storage, and so is the same count from its
        // start; memmove permits the overlap.
        let limit = unsafe storage.count - (type == .goAway ? 0 : Self.reserve)
        if end + size > limit, start > 0 {
            unsafe storage.baseAddress.unsafelyUnwrapped.copyMemory(
                from: storage.baseAddress.unsafelyUnwrapped + start, byteCount: count)
            end -= start
            start = 0
        }
        guard end + size <= limit else {
            isOverrun = true
            return false
        }
        append(UInt32(length) << 8 | UInt32(type.rawValue))
        append(flags.rawValue)
        append(streamID)
        return true
    }

    /// Appends an integer in network byte order. Call only after `begin` returned true.
    mutating func append<Integer: FixedWidthInteger & BitwiseCopyable>(_ value: Integer) {
        // SAFETY: `begin` has checked that the whole frame fits, and callers append at most the
        // length that they passed to it; the preface comes first, into storage with room for it.
        unsafe storage.storeBytes(of: value.bigEndian, toByteOffset: end, as: Integer.self)
        end += MemoryLayout<Integer>.size
    }

    /// Appends the bytes of `text`. Call only after `begin` returned true.
    mutating func append(_ text: StaticString) {
        for offset in 0..<text.utf8CodeUnitCount {
            // SAFETY: a static string has that many bytes, for the life of the process.
            append(unsafe text.utf8Start[offset])
        }
    }
}

extension ControlOutput {
    /// Appends the first bytes of each connection, "PRI * HTTP/2.0" and so on (RFC 9113 section
    /// 3.4).
    mutating func appendPreface() {
        precondition(count == 0, "the preface comes first")
        append("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" as StaticString)
    }
}

extension ClientConnectionStateMachine {
    /// Queues a frame; `body` appends its payload of `length` bytes. If the storage is full, the
    /// frame is dropped, and the next call of `nextEvent` ends the connection.
    mutating func queue(
        _ type: FrameType, flags: FrameFlags = [], streamID: UInt32 = 0, length: Int,
        _ body: (inout ControlOutput) -> Void
    ) {
        let before = output.count
        guard output.begin(type, flags: flags, streamID: streamID, length: length) else { return }
        body(&output)
        assert(
            output.count == before + FrameHeader.byteCount + length,
            "a frame is as long as its header says")
    }

    mutating func queueWindowUpdate(streamID: UInt32, increment: UInt32) {
        queue(.windowUpdate, streamID: streamID, length: 4) { $0.append(increment) }
    }

    mutating func queueReset(streamID: UInt32, _ code: ErrorCode) {
        queue(.resetStream, streamID: streamID, length: 4) { $0.append(code.rawValue) }
    }

    /// Queues our GOAWAY. Its last stream is always 0, because the server opens none.
    mutating func queueGoAway(_ code: ErrorCode, _ message: StaticString) {
        queue(.goAway, length: 8 + message.utf8CodeUnitCount) { output in
            output.append(UInt32(0))
            output.append(code.rawValue)
            output.append(message)
        }
    }
}
