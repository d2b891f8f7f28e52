import APNs
import Glibc
internal import Support

/// Room for the digits of one token at a time, which it owns.
@safe public struct TokenDigits: ~Copyable {
    private let room = OwnedMemory(byteCount: TokenText.maximumDigitCount)
    /// How many digits there are.
    private(set) var count = 0

    /// None yet.
    public init() {}

    /// Has the digits written anew.
    @inline(__always)
    public mutating func write<Result>(_ body: (inout OutputRawSpan) -> Result) -> Result {
        // SAFETY: the output ends before the room can change hands.
        var digits = unsafe OutputRawSpan(buffer: room.all, initializedCount: 0)
        let result = body(&digits)
        count = unsafe digits.finalize(for: room.all)
        return result
    }

    /// The digits.
    public var bytes: RawSpan {
        @inline(__always) @_lifetime(borrow self) get {
            // SAFETY: `write` has set so many, and they stay until its next call.
            unsafe room.bytes(0..<count)
        }
    }

    /// Whether a text has the same bytes.
    func isEqual(to text: RawSpan) -> Bool {
        guard text.byteCount == count else { return false }
        // SAFETY: both hold `count` bytes.
        return unsafe text.withUnsafeBytes { other in
            unsafe memcmp(other.baseAddress!, room.start, count) == 0
        }
    }
}
