/// The bytes of one segment, wherever they lie: a file, or memory in tests and simulations.
public protocol LedgerBytes {
    /// Bytes there are.
    var byteCount: UInt64 { get }

    /// Reads bytes from `offset` on; fewer than asked for only at the end, or where a read was
    /// short.
    ///
    /// - Parameters:
    ///   - offset: where to begin.
    ///   - buffer: where they go.
    /// - Returns: bytes read; 0 only at the end.
    /// - Throws: `LedgerError` with code `inputOutput`, or `interrupted`.
    func read(at offset: UInt64, into buffer: UnsafeMutableRawBufferPointer) throws(LedgerError)
        -> Int
}

/// One segment of a ledger, to be read.
public struct LedgerSegment {
    /// The run that wrote it, from 1, by its file name.
    public var epoch: UInt32
    /// The reactor that wrote it, by its file name.
    public var reactor: UInt16
    /// Its bytes.
    public var bytes: any LedgerBytes
    /// How many of them were on disk before rows were sent that they reserve: without them it is cut, or
    /// an old copy. 0: not known.
    public var durableByteCount: UInt64 = 0

    /// Names a segment and its bytes.
    public init(epoch: UInt32, reactor: UInt16, bytes: any LedgerBytes) {
        self.epoch = epoch
        self.reactor = reactor
        self.bytes = bytes
    }

    /// The segment's file name.
    public var name: String { LedgerFormat.segmentName(epoch: epoch, reactor: reactor) }
}

/// A segment's bytes in memory.
public struct LedgerMemory: LedgerBytes, Sendable {
    /// The bytes.
    var bytes: [UInt8]

    /// Takes the bytes.
    public init(_ bytes: [UInt8]) { self.bytes = bytes }

    /// Bytes there are.
    public var byteCount: UInt64 { UInt64(bytes.count) }

    /// Copies bytes from `offset` on.
    public func read(
        at offset: UInt64, into buffer: UnsafeMutableRawBufferPointer
    ) throws(LedgerError) -> Int {
        guard offset < byteCount else { return 0 }
        let count = min(buffer.count, bytes.count - Int(offset))
        // SAFETY: `count` bytes lie within both, and the buffer is the caller's memory.
        unsafe bytes.withUnsafeBytes { source in
            unsafe buffer.baseAddress?.copyMemory(
                from: source.baseAddress! + Int(offset), byteCount: count)
        }
        return count
    }
}
