internal import Glibc

/// A lock, and a condition that its holder may wait for.
///
/// What it guards belongs to its owner, which reaches it only in `locked`.
@safe package final class Monitor: @unchecked Sendable {
    // SAFETY: both are made in `init` at a place that stays, and destroyed when nobody has this left.
    private let mutex: UnsafeMutablePointer<pthread_mutex_t>
    private let condition: UnsafeMutablePointer<pthread_cond_t>

    package init() {
        unsafe mutex = .allocate(capacity: 1)
        unsafe condition = .allocate(capacity: 1)
        unsafe pthread_mutex_init(mutex, nil)
        unsafe pthread_cond_init(condition, nil)
    }

    deinit {
        unsafe pthread_cond_destroy(condition)
        unsafe pthread_mutex_destroy(mutex)
        unsafe condition.deallocate()
        unsafe mutex.deallocate()
    }

    /// Holds the lock for as long as `body` takes.
    package func locked<Result>(_ body: () -> Result) -> Result {
        unsafe pthread_mutex_lock(mutex)
        defer { unsafe pthread_mutex_unlock(mutex) }
        return body()
    }

    /// Lets go of the lock until somebody says that something changed; called by its holder, which
    /// looks again whether it is what it waits for.
    package func wait() { unsafe pthread_cond_wait(condition, mutex) }

    /// Wakes one that waits.
    package func signal() { unsafe pthread_cond_signal(condition) }

    /// Wakes all that wait.
    package func broadcast() { unsafe pthread_cond_broadcast(condition) }
}
