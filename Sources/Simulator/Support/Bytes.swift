internal import Glibc

extension Span<UInt8> {
    /// The same bytes as a raw span.
    @inline(__always)
    var rawBytes: RawSpan {
        // SAFETY: a UInt8 has no padding.
        @_lifetime(copy self) get { unsafe bytes }
    }
}

extension StaticString {
    /// Its text, which is there for as long as the process.
    @inline(__always)
    var rawBytes: RawSpan {
        @_lifetime(immortal) get {
            // SAFETY: constant data of `utf8CodeUnitCount` bytes.
            let text = unsafe RawSpan(_unsafeStart: utf8Start, byteCount: utf8CodeUnitCount)
            return unsafe _overrideLifetime(text, copying: ())
        }
    }
}

extension RawSpan {
    /// The byte at an offset, which is checked.
    @inline(__always)
    subscript(offset: Int) -> UInt8 {
        // SAFETY: any eight bits are a UInt8, and the load checks its bounds.
        unsafe unsafeLoad(fromByteOffset: offset, as: UInt8.self)
    }

    /// The four bytes from an offset, in network order; checked.
    @inline(__always)
    func integer(at offset: Int) -> UInt32 {
        // SAFETY: any 32 bits are a UInt32, and the load checks its bounds.
        unsafe UInt32(bigEndian: unsafeLoadUnaligned(fromByteOffset: offset, as: UInt32.self))
    }

    /// Whether these bytes are exactly those of `text`.
    @inline(__always)
    func matches(_ text: StaticString) -> Bool { equals(text.rawBytes) }

    /// Whether these bytes are exactly those of `other`.
    @inline(__always)
    func equals(_ other: [UInt8]) -> Bool { equals(other.span.rawBytes) }

    /// Whether these bytes are exactly those of `other`.
    @inline(__always)
    func equals(_ other: RawSpan) -> Bool {
        guard byteCount == other.byteCount else { return false }
        if byteCount == 0 { return true }
        // SAFETY: both are `byteCount` bytes long, which is not 0, so both have an address.
        return unsafe withUnsafeBytes { mine in
            unsafe other.withUnsafeBytes {
                unsafe memcmp(mine.baseAddress!, $0.baseAddress!, $0.count) == 0
            }
        }
    }
}

extension String {
    /// These bytes as text.
    init(decoding bytes: RawSpan) {
        // SAFETY: the text is a copy.
        self = unsafe bytes.withUnsafeBytes { unsafe String(decoding: $0, as: UTF8.self) }
    }
}
