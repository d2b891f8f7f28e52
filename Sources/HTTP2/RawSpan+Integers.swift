extension RawSpan {
    /// Returns the byte at `offset`; traps outside the span.
    @inline(__always)
    func byte(at offset: Int) -> UInt8 {
        // SAFETY: integers have no invalid bit pattern; the load needs no alignment and checks its
        // bounds.
        unsafe unsafeLoadUnaligned(fromByteOffset: offset, as: UInt8.self)
    }

    /// Returns the 16 bits at `offset`, in network byte order.
    @inline(__always)
    func uint16(at offset: Int) -> UInt16 {
        // SAFETY: an integer, as in `byte(at:)`: any bits, no alignment, checked bounds.
        unsafe UInt16(bigEndian: unsafeLoadUnaligned(fromByteOffset: offset, as: UInt16.self))
    }

    /// Returns the 32 bits at `offset`, in network byte order.
    @inline(__always)
    func uint32(at offset: Int) -> UInt32 {
        // SAFETY: an integer, as in `byte(at:)`: any bits, no alignment, checked bounds.
        unsafe UInt32(bigEndian: unsafeLoadUnaligned(fromByteOffset: offset, as: UInt32.self))
    }

    /// Returns the 64 bits at `offset`, in network byte order.
    @inline(__always)
    func uint64(at offset: Int) -> UInt64 {
        // SAFETY: an integer, as in `byte(at:)`: any bits, no alignment, checked bounds.
        unsafe UInt64(bigEndian: unsafeLoadUnaligned(fromByteOffset: offset, as: UInt64.self))
    }
}
