/// Bytes of one segment: a file, or memory in tests and simulations.
public protocol LedgerBytes {
    /// Number of bytes.
    var byteCount: UInt64 { get }

    /// Reads bytes from `offset` on. It reads fewer than requested only at the end or after a short
    /// read.
    ///
    /// - Parameters:
    ///   - offset: Offset of the first byte.
    ///   - buffer: Destination.
    /// - Returns: Number of bytes read; 0 only at the end.
    /// - Throws: `LedgerError` with code `inputOutput`, or `interrupted`.
    func read(at offset: UInt64, into buffer: UnsafeMutableRawBufferPointer) throws(LedgerError)
        -> Int
}

/// Segment of a ledger, for reading.
public struct LedgerSegment {
    /// Number of the run that wrote the segment, from 1, according to its file name.
    public var epoch: UInt32
    /// Number of the reactor that wrote the segment, according to its file name.
    public var reactor: UInt16
    /// Contents of the segment.
    public var bytes: any LedgerBytes
    /// Number of bytes that are known to have been durable; 0 if unknown. The run sent the rows
    /// reserved in these bytes only afterwards. If the segment is shorter now, it was cut off, or
    /// is from an old copy.
    public var durableByteCount: UInt64 = 0

    /// Creates a segment.
    public init(epoch: UInt32, reactor: UInt16, bytes: any LedgerBytes) {
        self.epoch = epoch
        self.reactor = reactor
        self.bytes = bytes
    }

    /// File name of the segment.
    public var name: String { LedgerFormat.segmentName(epoch: epoch, reactor: reactor) }
}

/// Contents of a segment in memory.
public struct LedgerMemory: LedgerBytes, Sendable {
    /// The bytes.
    var bytes: [UInt8]

    /// Creates contents from an array.
    public init(_ bytes: [UInt8]) { self.bytes = bytes }

    /// Number of bytes.
    public var byteCount: UInt64 { UInt64(bytes.count) }

    /// Copies bytes from `offset` on.
    public func read(
        at offset: UInt64, into buffer: UnsafeMutableRawBufferPointer
    ) throws(LedgerError) -> Int {
        guard offset < byteCount else { return 0 }
        let count = min(buffer.count, bytes.count - Int(offset))
        // SAFETY: `count` bytes are within both, and the buffer is the caller's memory.
        unsafe bytes.withUnsafeBytes { source in
            unsafe buffer.baseAddress?.copyMemory(
                from: source.baseAddress! + Int(offset), byteCount: count)
        }
        return count
    }
}
