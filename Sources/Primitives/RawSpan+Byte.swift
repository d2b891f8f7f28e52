extension RawSpan {
    /// Returns the byte at an offset, with a bounds check.
    @inline(__always)
    func byte(at offset: Int) -> UInt8 {
        // SAFETY: any eight bits are a valid UInt8, and the load checks its bounds.
        unsafe unsafeLoad(fromByteOffset: offset, as: UInt8.self)
    }
}
