internal import BroadsideRows
import BroadsideSupport
internal import Glibc

/// A list that can only be read in order: a compressed file, or standard input. The latest decoded
/// bytes are kept, so that a reader may go back a little. To go back further, the file is read from
/// its start again.
///
///     file ──▶ input ──▶ ListDecompressor ──▶ window ──▶ read
///
/// One thread at a time uses it: the main thread before and after a run, the list's own thread
/// during the run.
@safe final class ListStream: @unchecked Sendable {
    /// Number of decoded bytes that are kept. At least half of them precede the reader's position.
    static let windowByteCount = 2 << 20
    private static let inputByteCount = 128 << 10

    private let descriptor: Int32
    /// Name of the list in messages.
    private let name: InputName
    let compression: ListCompression?
    /// Whether the bytes can be read again; false for a pipe.
    let canRestart: Bool
    private var decompressor: ListDecompressor?
    /// Size of the file when it was opened. Bytes that are added later are not read.
    private let inputLimit: UInt64

    // SAFETY: `init` allocates it, `deinit` frees it; the bytes in `inputRange` are set.
    private let input: UnsafeMutableRawBufferPointer
    private var inputRange = 0..<0
    private var isInputAtEnd = false
    /// Number of bytes read from the file.
    private(set) var inputOffset: UInt64 = 0

    // SAFETY: `init` allocates it, `deinit` frees it; the first `windowCount` bytes are set.
    private let window: UnsafeMutableRawBufferPointer
    private var windowStart: UInt64 = 0
    private var windowCount = 0
    private var isAtEnd = false
    /// Whether the first decoded bytes were checked.
    private var isBeginningSeen = false
    /// Error that prevents further decoding. It is thrown once all bytes before it are returned.
    private var failure: BroadsideError?

    /// - Parameters:
    ///   - descriptor: Descriptor owned by the caller, which keeps it open while this value is
    ///     used.
    ///   - canRestart: Whether the descriptor is a file that can be read at any offset.
    ///   - compression: Compression of the bytes; nil to detect it from the first bytes.
    ///   - fileByteCount: Size of the file; nil for a pipe.
    init(
        descriptor: Int32, name: InputName, canRestart: Bool, compression given: ListCompression?,
        fileByteCount: UInt64? = nil
    ) throws(BroadsideError) {
        inputLimit = canRestart ? fileByteCount ?? .max : .max
        self.descriptor = descriptor
        self.name = name
        self.canRestart = canRestart
        // SAFETY: no byte is read before it is set: both ranges are empty. `readMore` sets `count`
        // bytes of the input, of which the first are read.
        unsafe input = .allocate(byteCount: Self.inputByteCount, alignment: 4_096)
        unsafe window = .allocate(byteCount: Self.windowByteCount, alignment: 4_096)
        var found = given
        if found == nil {
            var count = 0
            while count < 4 {
                let more = try unsafe Self.readMore(
                    descriptor, name, canRestart ? UInt64(count) : nil, input, from: count)
                if more == 0 { break }
                count += more
            }
            found = unsafe ListCompression.detect(Array(input[..<min(count, 4)]))
            inputRange = 0..<count
            inputOffset = UInt64(count)
        }
        compression = found
        decompressor = found.map { ListDecompressor($0) }
    }

    deinit {
        // SAFETY: allocated in `init`, and accessed only through this object.
        unsafe input.deallocate()
        unsafe window.deallocate()
    }

    /// Number of decoded bytes; nil until the end is reached.
    var decodedByteCount: UInt64? { isAtEnd ? windowStart + UInt64(windowCount) : nil }

    /// Reads decoded bytes from an offset on. Returns 0 only at the end.
    func read(
        at offset: UInt64, into buffer: UnsafeMutableRawBufferPointer
    ) throws(BroadsideError) -> Int {
        guard buffer.count > 0 else { return 0 }
        if offset < windowStart { try restart() }
        while true {
            if offset < windowStart + UInt64(windowCount) {
                let start = Int(offset - windowStart)
                let count = min(windowCount - start, buffer.count)
                // SAFETY: both ranges are within their memory.
                unsafe buffer.copyMemory(
                    from: UnsafeRawBufferPointer(rebasing: window[start..<(start + count)]))
                return count
            }
            if let failure { throw failure }
            if isAtEnd { return 0 }
            try decodeMore()
        }
    }

    private func restart() throws(BroadsideError) {
        guard canRestart else {
            throw BroadsideError(
                name, " can't be read a second time: put the list into a file", exitCode: 1)
        }
        decompressor = compression.map { ListDecompressor($0) }
        inputRange = 0..<0
        isInputAtEnd = false
        inputOffset = 0
        windowStart = 0
        windowCount = 0
        isAtEnd = false
        isBeginningSeen = false
        failure = nil
    }

    /// Appends decoded bytes to the window; sets `isAtEnd` or `failure` if there are none.
    private func decodeMore() throws(BroadsideError) {
        assert(inputRange.upperBound <= Self.inputByteCount, "the input fits into its buffer")
        assert(windowCount <= Self.windowByteCount, "the window fits into its buffer")
        if windowCount == Self.windowByteCount {
            let half = Self.windowByteCount / 2
            // SAFETY: both halves are within the window.
            unsafe window.baseAddress.unsafelyUnwrapped.copyMemory(
                from: window.baseAddress.unsafelyUnwrapped + half, byteCount: half)
            windowStart += UInt64(half)
            windowCount = half
        }
        if inputRange.isEmpty, !isInputAtEnd {
            let position = canRestart ? inputOffset : nil
            let found = try unsafe Self.readMore(descriptor, name, position, input, from: 0)
            let count = Int(min(UInt64(found), inputLimit - min(inputLimit, inputOffset)))
            inputRange = 0..<count
            inputOffset += UInt64(count)
            isInputAtEnd = count == 0
        }
        // SAFETY: `inputRange` is set and inside the input, `windowCount` at most the window's
        // size. The decompressor reads and writes inside what it is given, and returns how much.
        let source = unsafe UnsafeRawBufferPointer(rebasing: input[inputRange])
        let room = unsafe UnsafeMutableRawBufferPointer(rebasing: window[windowCount...])
        guard compression != nil else {
            let count = min(source.count, room.count)
            // SAFETY: `count` is at most the count of each of the two buffers.
            unsafe room.copyMemory(from: UnsafeRawBufferPointer(rebasing: source[..<count]))
            inputRange = (inputRange.lowerBound + count)..<inputRange.upperBound
            windowCount += count
            isAtEnd = isInputAtEnd
            return
        }
        do {
            guard
                let progress = try unsafe decompressor?.decode(
                    RawSpan(_unsafeBytes: source), into: room)
            else { return }
            assert(
                progress.consumed <= source.count && progress.produced <= room.count,
                "the decoder stays within its buffers")
            inputRange = (inputRange.lowerBound + progress.consumed)..<inputRange.upperBound
            windowCount += progress.produced
            let isOver = isInputAtEnd && progress.produced == 0
            inspectBeginning(isWhole: isOver)
            guard isOver, failure == nil else { return }
            isAtEnd = decompressor?.mayEnd ?? true
            if !isAtEnd { failure = cutOff }
        } catch {
            failure = unreadable(error)
        }
    }

    /// Rejects a list that was compressed twice, also on standard input. Standard input is
    /// decompressed into a file; without this check, that file would be decompressed again.
    ///
    /// - Parameter isWhole: Whether the window has all bytes of the list.
    private func inspectBeginning(isWhole: Bool) {
        let markByteCount = 4
        guard !isBeginningSeen, isWhole || windowCount >= markByteCount else { return }
        isBeginningSeen = true
        // SAFETY: `windowCount` bytes of the window are set, and are copied at once.
        let beginning = unsafe Array(window[..<min(windowCount, markByteCount)])
        guard let compression, let inner = ListCompression.detect(beginning) else { return }
        windowCount = 0
        failure = .request(
            name,
            " is compressed twice (\(inner.rawValue) within \(compression.rawValue)): decompress it "
                + "once, as \(compression.rawValue) -d does")
    }

    /// Waits for the next bytes of a pipe, which may be slow or never end. A pending stop signal
    /// ends the wait.
    private static func awaitInput(_ descriptor: Int32) throws(BroadsideError) {
        repeat {
            guard !SignalWatch.isStopPending else {
                throw BroadsideError(
                    "stopped by a signal before the whole list was read: nothing "
                        + "was sent or kept; start again", exitCode: 3)
            }
        } while SystemCall.poll(descriptor, POLLIN, 100) == 0
    }

    private static func readMore(
        _ descriptor: Int32, _ name: InputName, _ offset: UInt64?,
        _ buffer: UnsafeMutableRawBufferPointer, from start: Int
    ) throws(BroadsideError) -> Int {
        // SAFETY: the range traps if `start` is behind the buffer's end; the system sets at most as
        // many bytes as there is room for.
        let room = unsafe UnsafeMutableRawBufferPointer(rebasing: buffer[start...])
        if offset == nil { try awaitInput(descriptor) }
        while true {
            let count =
                if let offset {
                    unsafe pread(descriptor, room.baseAddress, room.count, off_t(offset))
                } else {
                    unsafe Glibc.read(descriptor, room.baseAddress, room.count)
                }
            if count < 0, errno == EINTR { continue }
            guard count >= 0 else {
                throw BroadsideError(name, ": \(describe(errno: errno))", exitCode: 5)
            }
            return count
        }
    }

    private var position: String {
        let lost = decompressor?.lostCount ?? 0
        return "after \(windowStart + UInt64(windowCount + lost)) bytes of the list"
    }

    // Before a run, a wrong file is a usage error. A run that finds it later reports its own exit
    // code instead of this one.

    private var cutOff: BroadsideError {
        .damaged(
            name,
            " is cut off: its \(compression?.rawValue ?? "") data ends too "
                + "early, \(position): replace it with the whole file")
    }

    private func unreadable(_ fault: ListDecompressor.Fault) -> BroadsideError {
        switch fault {
        case .corrupt(let words):
            .damaged(
                name,
                " is damaged \(position): \(words): replace it with an intact copy, or compress the list again"
            )
        case .windowTooLarge:
            .request(
                name,
                " needs a window of more than "
                    + "\(ListDecompressor.windowByteCountMax >> 20) MiB to be decompressed: compress "
                    + "it "
                    + "without --long and with a level up to 19")
        }
    }
}
