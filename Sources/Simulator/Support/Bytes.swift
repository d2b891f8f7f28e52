internal import Glibc

extension Span<UInt8> {
    /// The bytes as a raw span.
    @inline(__always)
    var rawBytes: RawSpan {
        // SAFETY: a UInt8 has no padding.
        @_lifetime(copy self) get { unsafe bytes }
    }
}

extension StaticString {
    /// The text's bytes, which are valid for the lifetime of the process.
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
    /// The byte at an offset, with a bounds check.
    @inline(__always)
    subscript(offset: Int) -> UInt8 {
        // SAFETY: any eight bits are a valid UInt8, and the load checks its bounds.
        unsafe unsafeLoad(fromByteOffset: offset, as: UInt8.self)
    }

    /// Returns the four bytes at an offset in network byte order, with a bounds check.
    @inline(__always)
    func integer(at offset: Int) -> UInt32 {
        // SAFETY: any 32 bits are a valid UInt32, and the load checks its bounds.
        unsafe UInt32(bigEndian: unsafeLoadUnaligned(fromByteOffset: offset, as: UInt32.self))
    }

    /// Returns whether the bytes equal those of `text`.
    @inline(__always)
    func matches(_ text: StaticString) -> Bool { equals(text.rawBytes) }

    /// Returns whether the bytes equal those of `other`.
    @inline(__always)
    func equals(_ other: [UInt8]) -> Bool { equals(other.span.rawBytes) }

    /// Returns whether the bytes equal those of `other`.
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
    /// Decodes the bytes as UTF-8 text.
    init(decoding bytes: RawSpan) {
        // SAFETY: the text is a copy.
        self = unsafe bytes.withUnsafeBytes { unsafe String(decoding: $0, as: UTF8.self) }
    }
}
