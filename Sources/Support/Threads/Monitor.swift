internal import Glibc

/// A lock, and a condition that its holder may wait for.
///
/// What it guards belongs to its owner, which reaches it only in `locked`.
@safe final class Monitor: @unchecked Sendable {
    // SAFETY: both are made in `init` at a place that stays, and destroyed when nobody has this left.
    private let mutex: UnsafeMutablePointer<pthread_mutex_t>
    private let condition: UnsafeMutablePointer<pthread_cond_t>

    init() {
        // SAFETY: each place has room for one, and is initialised at once; both stay where they
        // are.
        unsafe mutex = .allocate(capacity: 1)
        unsafe condition = .allocate(capacity: 1)
        unsafe pthread_mutex_init(mutex, nil)
        unsafe pthread_cond_init(condition, nil)
    }

    deinit {
        // SAFETY: the last reference is gone, so that nobody waits and nobody holds the lock.
        unsafe pthread_cond_destroy(condition)
        unsafe pthread_mutex_destroy(mutex)
        unsafe condition.deallocate()
        unsafe mutex.deallocate()
    }

    /// Holds the lock for as long as `body` takes.
    func locked<Result>(_ body: () -> Result) -> Result {
        // SAFETY: `init` made the lock, and `self` keeps it; it is unlocked by the thread that
        // locked it.
        unsafe pthread_mutex_lock(mutex)
        defer { unsafe pthread_mutex_unlock(mutex) }
        return body()
    }

    /// Lets go of the lock until somebody says that something changed; called by its holder, which
    /// looks again whether it is what it waits for.
    func wait() {
        // SAFETY: `init` made both, and `self` keeps them; the caller holds the lock.
        unsafe pthread_cond_wait(condition, mutex)
    }

    /// Wakes one that waits.
    func signal() {
        // SAFETY: `init` made the condition, and `self` keeps it.
        unsafe pthread_cond_signal(condition)
    }

    /// Wakes all that wait.
    func broadcast() {
        // SAFETY: `init` made the condition, and `self` keeps it.
        unsafe pthread_cond_broadcast(condition)
    }
}
