internal import Glibc

/// A lock with a condition variable.
///
/// The protected state belongs to the owner, which accesses it only in `locked`.
@safe final class Monitor: @unchecked Sendable {
    // SAFETY: both are created in `init` at a stable address and destroyed when the last reference
    // is gone.
    private let mutex: UnsafeMutablePointer<pthread_mutex_t>
    private let condition: UnsafeMutablePointer<pthread_cond_t>

    init() {
        // SAFETY: each allocation has room for one value and is initialized immediately; both keep
        // their addresses.
        unsafe mutex = .allocate(capacity: 1)
        unsafe condition = .allocate(capacity: 1)
        unsafe pthread_mutex_init(mutex, nil)
        unsafe pthread_cond_init(condition, nil)
    }

    deinit {
        // SAFETY: the last reference is gone, so no thread waits and none holds the lock.
        unsafe pthread_cond_destroy(condition)
        unsafe pthread_mutex_destroy(mutex)
        unsafe condition.deallocate()
        unsafe mutex.deallocate()
    }

    /// Holds the lock during `body`.
    func locked<Result>(_ body: () -> Result) -> Result {
        // SAFETY: `init` created the lock, and `self` keeps it alive; the thread that locked it
        // unlocks it.
        unsafe pthread_mutex_lock(mutex)
        defer { unsafe pthread_mutex_unlock(mutex) }
        return body()
    }

    /// Releases the lock until a change is signalled. Must be called by the lock's holder, which
    /// then checks its condition again.
    func wait() {
        // SAFETY: `init` created both, and `self` keeps them alive; the caller holds the lock.
        unsafe pthread_cond_wait(condition, mutex)
    }

    /// Wakes one waiting thread.
    func signal() {
        // SAFETY: `init` created the condition, and `self` keeps it alive.
        unsafe pthread_cond_signal(condition)
    }

    /// Wakes all waiting threads.
    func broadcast() {
        // SAFETY: `init` created the condition, and `self` keeps it alive.
        unsafe pthread_cond_broadcast(condition)
    }
}
