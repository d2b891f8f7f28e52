import Glibc

/// A reusable buffer for the digits of one token.
@safe public struct TokenDigits: ~Copyable {
    // SAFETY: `TokenText.maximumDigitCount` bytes, freed in `deinit` and accessible only through
    // this value.
    private let room: UnsafeMutableRawBufferPointer
    /// The number of digits.
    public private(set) var count = 0

    /// Creates an empty buffer.
    public init() {
        // SAFETY: new memory; `count` is 0, so nothing is read before it is written.
        unsafe room = .allocate(byteCount: TokenText.maximumDigitCount, alignment: 16)
    }

    // SAFETY: allocated in `init` and accessible only through this value.
    deinit { unsafe room.deallocate() }

    /// Replaces the digits with the closure's output.
    @inline(__always)
    public mutating func write<Result>(_ body: (inout OutputRawSpan) -> Result) -> Result {
        // SAFETY: the output's lifetime ends before the memory can be used otherwise.
        var digits = unsafe OutputRawSpan(buffer: room, initializedCount: 0)
        let result = body(&digits)
        count = unsafe digits.finalize(for: room)
        assert(count <= TokenText.maximumDigitCount)
        return result
    }

    /// The digits.
    public var bytes: RawSpan {
        @inline(__always) @_lifetime(borrow self) get {
            // SAFETY: `write` initialized `count` bytes, which stay valid until its next call.
            let span = unsafe RawSpan(_unsafeStart: room.baseAddress!, byteCount: count)
            return unsafe _overrideLifetime(span, borrowing: self)
        }
    }

    /// Returns whether the digits equal a text.
    public func isEqual(to text: RawSpan) -> Bool {
        guard text.byteCount == count else { return false }
        // SAFETY: both have `count` bytes.
        return unsafe text.withUnsafeBytes { other in
            unsafe memcmp(other.baseAddress!, room.baseAddress!, count) == 0
        }
    }
}
