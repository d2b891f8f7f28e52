internal import CBroadsideOpenSSL

/// Bytes that nobody else should see, in memory of their own that is overwritten when they are no
/// longer needed: passphrases, provider tokens, what a key file holds.
@safe public final class SecretBytes: Sendable {
    // SAFETY: allocated and written once, by `init`; only read until `deinit`, which nobody can
    // overlap and which frees it.
    private nonisolated(unsafe) let memory: UnsafeMutableRawBufferPointer

    /// Takes the bytes over: the caller's array is overwritten and empty afterwards.
    public init(taking bytes: inout [UInt8]) {
        // SAFETY: there is room for all of the bytes, which are copied into it, so that all are
        // set.
        unsafe memory = .allocate(byteCount: bytes.count, alignment: 16)
        unsafe memory.copyBytes(from: bytes)
        bytes.cleanse()
    }

    /// How many there are.
    public var count: Int {
        // SAFETY: only the count of the range is read.
        unsafe memory.count
    }

    /// Lends the bytes for a moment.
    public func withBytes<Result>(_ body: (RawSpan) -> Result) -> Result {
        // SAFETY: all bytes are set, and the memory lives as long as `self`, which outlives the
        // call.
        unsafe body(RawSpan(_unsafeBytes: UnsafeRawBufferPointer(memory)))
    }

    deinit {
        // SAFETY: the last reference is gone; the memory is what `init` allocated.
        unsafe OPENSSL_cleanse(memory.baseAddress, memory.count)
        unsafe memory.deallocate()
    }
}

extension Array<UInt8> {
    /// Overwrites the bytes, as a compiler would not dare to leave out, and empties the array. What
    /// other arrays share is copied before and stays: call it on the only one.
    public mutating func cleanse() {
        // SAFETY: the array's own bytes, all of which are overwritten; integers may be any bits.
        unsafe withUnsafeMutableBytes { unsafe OPENSSL_cleanse($0.baseAddress, $0.count) }
        self = []
    }
}

/// Overwrites memory that held something secret, as a compiler would not dare to leave out.
public func cleanse(_ memory: UnsafeMutableRawBufferPointer) {
    // SAFETY: the caller has the memory to itself, and its range says how much there is.
    unsafe OPENSSL_cleanse(memory.baseAddress, memory.count)
}

/// What becomes of the process' memory when it crashes.
public enum ProcessMemory {
    /// From now on no core dump is written, and no other process of the same user may look inside
    /// (PR_SET_DUMPABLE): the memory holds keys.
    public static func keepToItself() { openssl_forbid_dumps() }
}
