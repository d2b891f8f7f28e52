extension RawSpan {
    /// Returns the byte at an offset, with a bounds check.
    @inlinable package func byte(at offset: Int) -> UInt8 {
        // SAFETY: any eight bits are a valid byte, and the load checks its bounds.
        unsafe unsafeLoad(fromByteOffset: offset, as: UInt8.self)
    }
}

extension RawSpan {
    /// Returns whether two spans have equal bytes.
    @inlinable @inline(__always)
    package func holdsSame(as other: RawSpan) -> Bool {
        guard byteCount == other.byteCount else { return false }
        var offset = 0
        while offset < byteCount {
            // SAFETY: the offset is below the counts of both.
            let one = unsafe unsafeLoad(fromUncheckedByteOffset: offset, as: UInt8.self)
            let two = unsafe other.unsafeLoad(fromUncheckedByteOffset: offset, as: UInt8.self)
            if one != two { return false }
            offset &+= 1
        }
        return true
    }
}

extension Array where Element: FixedWidthInteger & BitwiseCopyable {
    /// The array's bytes as a raw span.
    @inlinable package var rawSpan: RawSpan {
        // SAFETY: integers have no padding, so all bytes are initialized.
        @_lifetime(borrow self) get { unsafe span.bytes }
    }
}

extension [UInt8] {
    /// Copies the bytes of a span.
    @inlinable package init(_ bytes: RawSpan) {
        // SAFETY: a span's bytes are initialized and are copied before the closure ends.
        self = unsafe bytes.withUnsafeBytes { unsafe Array($0) }
    }

    /// Appends a copy of a span's bytes.
    @inlinable package mutating func append(_ bytes: RawSpan) {
        // SAFETY: a span's bytes are initialized and are copied before the closure ends.
        unsafe bytes.withUnsafeBytes { unsafe append(contentsOf: $0) }
    }

    /// Creates an array from the output of a writer, at most `capacity` bytes.
    package init<Failure>(
        capacity: Int, filling body: (inout OutputRawSpan) throws(Failure) -> Void
    ) throws(Failure) {
        // SAFETY: the span counts the bytes appended from the beginning and never exceeds its room;
        // `finalize` returns the number of initialized bytes however the body ends.
        let room = UnsafeMutableRawBufferPointer.allocate(byteCount: capacity, alignment: 8)
        defer { unsafe room.deallocate() }
        var output = unsafe OutputRawSpan(buffer: room, initializedCount: 0)
        try body(&output)
        let count = unsafe output.finalize(for: room)
        self = unsafe [UInt8](UnsafeRawBufferPointer(rebasing: room[..<count]))
    }
}
