internal import CBroadsideLiburing

/// Memory for what the kernel says about an open file: a `struct statx`.
@safe public struct FileStatus: ~Copyable {
    // SAFETY: zeros, or what the kernel filled in; freed in `deinit`.
    let memory: UnsafeMutableRawBufferPointer

    /// The size of `struct statx`, which is part of the kernel's interface.
    private static var byteCount: Int { 256 }

    /// Memory that nothing is known about yet.
    public init() {
        // SAFETY: the memory is set to zeros before anything reads it.
        unsafe memory = .allocate(byteCount: Self.byteCount, alignment: 8)
        unsafe memory.initializeMemory(as: UInt8.self, repeating: 0)
    }

    deinit {
        // SAFETY: nobody else frees it, and the kernel is done with it (see `Ring.status`).
        unsafe memory.deallocate()
    }

    /// Under how many names the file is; 0: it was removed.
    public var linkCount: UInt32 {
        // SAFETY: the memory has the bytes of a whole `struct statx`.
        unsafe ring_link_count(memory.baseAddress)
    }

    /// The file's permission bits.
    public var permissions: UInt32 {
        // SAFETY: as for `linkCount`.
        unsafe ring_permissions(memory.baseAddress)
    }

    /// The file's size.
    public var byteCount: UInt64 {
        // SAFETY: as for `linkCount`.
        unsafe ring_byte_count(memory.baseAddress)
    }
}
