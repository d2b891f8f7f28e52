import Glibc

/// What the system lets this process have.
public enum ResourceLimits {
    /// Raises two limits as far as this process may: open files, of which each connection is one,
    /// and locked memory, which a ring's queues count as where CAP_IPC_LOCK is missing (about
    /// 200 KiB for one of 1024 entries). What cannot be raised stays as it is.
    public static func raise() {
        raise(__rlimit_resource_t(RLIMIT_NOFILE.rawValue))
        raise(__rlimit_resource_t(__RLIMIT_MEMLOCK.rawValue))
    }

    /// The most files that this process may open once its limit is raised.
    public static var openFiles: UInt64 {
        var limit = rlimit()
        // SAFETY: `limit` is a local that getrlimit sets during the call.
        let result = unsafe getrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit)
        // What POSIX systems allowed of old, where there is no telling.
        return result == 0 ? UInt64(limit.rlim_max) : 1024
    }

    /// The memory that this process may lock, bytes; nil: as much as it wants.
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
