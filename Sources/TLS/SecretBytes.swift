internal import CBroadsideOpenSSL

/// Confidential bytes in memory that is overwritten when it is released: passphrases, provider
/// tokens, the content of key files.
@safe public final class SecretBytes: Sendable {
    // SAFETY: allocated and written once, in `init`; only read until `deinit`, which no access can
    // overlap and which frees it.
    private nonisolated(unsafe) let memory: UnsafeMutableRawBufferPointer

    /// Takes the bytes; the caller's array is overwritten and emptied.
    public init(taking bytes: inout [UInt8]) {
        // SAFETY: there is room for all bytes, which are copied, so all are initialized.
        unsafe memory = .allocate(byteCount: bytes.count, alignment: 16)
        unsafe memory.copyBytes(from: bytes)
        bytes.cleanse()
    }

    /// The number of bytes.
    public var count: Int {
        // SAFETY: only the count of the range is read.
        unsafe memory.count
    }

    /// Passes the bytes to a closure.
    public func withBytes<Result>(_ body: (RawSpan) -> Result) -> Result {
        // SAFETY: all bytes are initialized, and the memory lives as long as `self`, which outlives
        // the call.
        unsafe body(RawSpan(_unsafeBytes: UnsafeRawBufferPointer(memory)))
    }

    /// Returns a copy, which the caller must overwrite after use.
    public var copy: [UInt8] {
        // SAFETY: all bytes are set, and the memory lives as long as `self`.
        unsafe Array(UnsafeRawBufferPointer(memory))
    }

    deinit {
        // SAFETY: the last reference is gone, and the memory was allocated in `init`.
        unsafe OPENSSL_cleanse(memory.baseAddress, memory.count)
        unsafe memory.deallocate()
    }
}

extension Array<UInt8> {
    /// Overwrites the bytes in a way that the compiler cannot eliminate, and empties the array. If
    /// the array shares its storage, it is copied first, and the shared bytes remain. Therefore,
    /// call this only on the sole reference.
    public mutating func cleanse() {
        // SAFETY: the array's own bytes, all of which are overwritten; any bits are valid integers.
        unsafe withUnsafeMutableBytes { unsafe OPENSSL_cleanse($0.baseAddress, $0.count) }
        self = []
    }
}

/// Overwrites memory that held a secret. The compiler cannot eliminate this overwriting.
public func cleanse(_ memory: UnsafeMutableRawBufferPointer) {
    // SAFETY: the caller has exclusive access to the memory, whose size is part of its range.
    unsafe OPENSSL_cleanse(memory.baseAddress, memory.count)
}

/// Protection of the process memory.
public enum ProcessMemory {
    /// Disables core dumps and prevents other processes of the same user from reading this
    /// process's memory (PR_SET_DUMPABLE), because it holds keys.
    public static func keepToItself() { openssl_forbid_dumps() }
}
