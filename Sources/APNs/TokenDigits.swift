import Glibc

/// Room for the digits of one token at a time, which it owns.
@safe public struct TokenDigits: ~Copyable {
    // SAFETY: `TokenText.maximumDigitCount` bytes, freed in `deinit`, and reached only through this
    // value.
    private let room: UnsafeMutableRawBufferPointer
    /// How many digits there are.
    public private(set) var count = 0

    /// None yet.
    public init() {
        // SAFETY: fresh memory, of which `count` says that nothing is set.
        unsafe room = .allocate(byteCount: TokenText.maximumDigitCount, alignment: 16)
    }

    // SAFETY: allocated in `init`, and reached only through this value.
    deinit { unsafe room.deallocate() }

    /// Has the digits written anew.
    @inline(__always)
    public mutating func write<Result>(_ body: (inout OutputRawSpan) -> Result) -> Result {
        // SAFETY: the output ends before the room can change hands.
        var digits = unsafe OutputRawSpan(buffer: room, initializedCount: 0)
        let result = body(&digits)
        count = unsafe digits.finalize(for: room)
        return result
    }

    /// The digits.
    public var bytes: RawSpan {
        @inline(__always) @_lifetime(borrow self) get {
            // SAFETY: `write` has set so many, and they stay until its next call.
            let span = unsafe RawSpan(_unsafeStart: room.baseAddress!, byteCount: count)
            return unsafe _overrideLifetime(span, borrowing: self)
        }
    }

    /// Whether a text has the same bytes.
    public func isEqual(to text: RawSpan) -> Bool {
        guard text.byteCount == count else { return false }
        // SAFETY: both hold `count` bytes.
        return unsafe text.withUnsafeBytes { other in
            unsafe memcmp(other.baseAddress!, room.baseAddress!, count) == 0
        }
    }
}
