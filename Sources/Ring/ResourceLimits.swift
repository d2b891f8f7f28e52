import Glibc

/// The resource limits of this process.
public enum ResourceLimits {
    /// Raises two limits as far as permitted. A limit that cannot be raised stays unchanged. One is
    /// the limit on open files, because each connection is an open file. The other is the limit on
    /// locked memory: without CAP_IPC_LOCK, a ring's queues count as locked memory (about 200 KiB
    /// for a ring of 1024 entries).
    public static func raise() {
        raise(__rlimit_resource_t(RLIMIT_NOFILE.rawValue))
        raise(__rlimit_resource_t(__RLIMIT_MEMLOCK.rawValue))
    }

    /// Maximum number of open files after `raise`.
    public static var openFiles: UInt64 {
        var limit = rlimit()
        // SAFETY: `limit` is a local that getrlimit sets during the call.
        let result = unsafe getrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit)
        // If the limit is unknown, returns the traditional one of POSIX systems.
        return result == 0 ? UInt64(limit.rlim_max) : 1024
    }

    /// Maximum number of open files under the current limit.
    public static var openFilesNow: UInt64 {
        var limit = rlimit()
        // SAFETY: `limit` is a local that getrlimit sets during the call.
        let result = unsafe getrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit)
        return result == 0 ? UInt64(limit.rlim_cur) : 1024
    }

    /// Memory that this process may lock, in bytes; nil if unlimited.
    public static var lockedMemory: UInt64? {
        var limit = rlimit()
        // SAFETY: `limit` is a local that getrlimit sets during the call.
        let result = unsafe getrlimit(__rlimit_resource_t(__RLIMIT_MEMLOCK.rawValue), &limit)
        return result == 0 && limit.rlim_max != .max ? UInt64(limit.rlim_max) : nil
    }

    private static func raise(_ resource: __rlimit_resource_t) {
        var limit = rlimit()
        // SAFETY: `limit` is a local, which one call sets and the other reads; neither keeps its
        // address.
        guard unsafe getrlimit(resource, &limit) == 0 else { return }
        limit.rlim_cur = limit.rlim_max
        _ = unsafe setrlimit(resource, &limit)
    }
}
