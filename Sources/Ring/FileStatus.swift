internal import CBroadsideLiburing

/// Memory for the kernel's status of an open file: a `struct statx`.
@safe public struct FileStatus: ~Copyable {
    // SAFETY: zeros, or written by the kernel; freed in `deinit`.
    let memory: UnsafeMutableRawBufferPointer

    /// Size of `struct statx`, which is part of the kernel's interface.
    private static var byteCount: Int { 256 }

    /// Creates zeroed memory.
    public init() {
        // SAFETY: the memory is set to zeros before anything reads it.
        unsafe memory = .allocate(byteCount: Self.byteCount, alignment: 8)
        unsafe memory.initializeMemory(as: UInt8.self, repeating: 0)
    }

    deinit {
        // SAFETY: not freed elsewhere, and the kernel no longer uses it (see `Ring.write`).
        unsafe memory.deallocate()
    }

    /// Number of the file's names (hard links); 0 if the file was removed.
    public var linkCount: UInt32 {
        // SAFETY: the memory has the size of a `struct statx`.
        unsafe ring_link_count(memory.baseAddress)
    }

    /// The file's permission bits.
    public var permissions: UInt32 {
        // SAFETY: as for `linkCount`.
        unsafe ring_permissions(memory.baseAddress)
    }

    /// The file's size in bytes.
    public var byteCount: UInt64 {
        // SAFETY: as for `linkCount`.
        unsafe ring_byte_count(memory.baseAddress)
    }
}
