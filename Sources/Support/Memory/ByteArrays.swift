extension RawSpan {
    /// The byte at an offset, which is checked.
    @inlinable package func byte(at offset: Int) -> UInt8 {
        // SAFETY: any eight bits are a byte, and the load checks its bounds.
        unsafe unsafeLoad(fromByteOffset: offset, as: UInt8.self)
    }
}

extension RawSpan {
    /// Whether two spans have the same bytes.
    @inlinable @inline(__always)
    package func holdsSame(as other: RawSpan) -> Bool {
        guard byteCount == other.byteCount else { return false }
        var offset = 0
        while offset < byteCount {
            // SAFETY: below the count of both.
            let one = unsafe unsafeLoad(fromUncheckedByteOffset: offset, as: UInt8.self)
            let two = unsafe other.unsafeLoad(fromUncheckedByteOffset: offset, as: UInt8.self)
            if one != two { return false }
            offset &+= 1
        }
        return true
    }
}

extension Array where Element: FixedWidthInteger & BitwiseCopyable {
    /// The array's memory, where a raw span is wanted.
    @inlinable package var rawSpan: RawSpan {
        // SAFETY: integers have no padding, so that all bytes are set.
        @_lifetime(borrow self) get { unsafe span.bytes }
    }
}

extension [UInt8] {
    /// A copy of these bytes.
    @inlinable package init(_ bytes: RawSpan) {
        // SAFETY: a span's bytes are set, and are copied before the closure ends.
        self = unsafe bytes.withUnsafeBytes { unsafe Array($0) }
    }

    /// Appends a copy of these bytes.
    @inlinable package mutating func append(_ bytes: RawSpan) {
        // SAFETY: a span's bytes are set, and are copied before the closure ends.
        unsafe bytes.withUnsafeBytes { unsafe append(contentsOf: $0) }
    }

    /// An array of the bytes that a writer appends, at most `capacity` of them.
    package init<Failure>(
        capacity: Int, filling body: (inout OutputRawSpan) throws(Failure) -> Void
    ) throws(Failure) {
        // SAFETY: the span counts what it appended from the beginning on, and never goes beyond its
        // room; `finalize` says how many bytes are set, however the body ends.
        let room = UnsafeMutableRawBufferPointer.allocate(byteCount: capacity, alignment: 8)
        defer { unsafe room.deallocate() }
        var output = unsafe OutputRawSpan(buffer: room, initializedCount: 0)
        try body(&output)
        let count = unsafe output.finalize(for: room)
        self = unsafe [UInt8](UnsafeRawBufferPointer(rebasing: room[..<count]))
    }
}
