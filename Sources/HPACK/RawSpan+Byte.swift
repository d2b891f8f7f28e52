extension RawSpan {
    /// Returns the byte at `offset`; traps outside the span.
    @usableFromInline @inline(__always)
    func byte(at offset: Int) -> UInt8 {
        // SAFETY: a UInt8 has no invalid bit pattern and no alignment, and the load checks its
        // bounds.
        unsafe unsafeLoad(fromByteOffset: offset, as: UInt8.self)
    }
}
