extension RawSpan {
    /// The byte at an offset, which is checked.
    @inline(__always)
    func byte(at offset: Int) -> UInt8 {
        // SAFETY: any eight bits are a UInt8, and the load checks its bounds.
        unsafe unsafeLoad(fromByteOffset: offset, as: UInt8.self)
    }
}
