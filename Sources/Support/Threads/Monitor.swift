internal import Glibc

/// A lock with a condition variable.
///
/// The protected state belongs to the owner, which accesses it only in `locked`.
@safe package final class Monitor: @unchecked Sendable {
    // SAFETY: both are created in `init` at a stable address and destroyed when the last reference
    // is gone.
    private let mutex: UnsafeMutablePointer<pthread_mutex_t>
    private let condition: UnsafeMutablePointer<pthread_cond_t>

    package init() {
        // SAFETY: each allocation has room for one value and is initialized immediately; both keep
        // their addresses.
        unsafe mutex = .allocate(capacity: 1)
        unsafe condition = .allocate(capacity: 1)
        unsafe pthread_mutex_init(mutex, nil)
        var attributes = pthread_condattr_t()
        unsafe pthread_condattr_init(&attributes)
        defer { unsafe pthread_condattr_destroy(&attributes) }
        // With this clock, waits with a limit do not depend on the wall clock.
        unsafe pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC)
        unsafe pthread_cond_init(condition, &attributes)
    }

    deinit {
        // SAFETY: the last reference is gone, so no thread waits and none holds the lock.
        unsafe pthread_cond_destroy(condition)
        unsafe pthread_mutex_destroy(mutex)
        unsafe condition.deallocate()
        unsafe mutex.deallocate()
    }

    /// Holds the lock during `body`. This method is compiled into its callers, because otherwise
    /// the types of results would be looked up at run time.
    @inlinable
    package func locked<Result>(_ body: () -> Result) -> Result {
        lock()
        defer { unlock() }
        return body()
    }

    @usableFromInline
    package func lock() {
        // SAFETY: `init` created the lock, and `self` keeps it alive.
        unsafe pthread_mutex_lock(mutex)
    }

    @usableFromInline
    package func unlock() {
        // SAFETY: `init` created the lock, and `self` keeps it alive; the calling thread holds it.
        unsafe pthread_mutex_unlock(mutex)
    }

    /// Releases the lock until a change is signaled. Must be called by the lock's holder, which
    /// then checks its condition again.
    @usableFromInline
    package func wait() {
        // SAFETY: `init` created both, and `self` keeps them alive; the caller holds the lock.
        unsafe pthread_cond_wait(condition, mutex)
    }

    /// Releases the lock until a change is signaled, but only for a limited time. Must be called by
    /// the lock's holder, which then checks its condition again.
    package func wait(milliseconds: Int) {
        assert(milliseconds >= 0, "a wait in the past")
        var time = timespec()
        // SAFETY: the time is a local, which the call writes. It is that of the condition's clock,
        // which is not the clock of `Clock`.
        unsafe clock_gettime(CLOCK_MONOTONIC, &time)
        let nanoseconds = UInt64(time.tv_nsec) + UInt64(milliseconds) * millisecond
        time.tv_sec += Int(nanoseconds / second)
        time.tv_nsec = Int(nanoseconds % second)
        // SAFETY: `init` created both, and `self` keeps them alive; the caller holds the lock. The
        // time is a local, read during the call.
        unsafe pthread_cond_timedwait(condition, mutex, &time)
    }

    /// Wakes one waiting thread.
    @usableFromInline
    package func signal() {
        // SAFETY: `init` created the condition, and `self` keeps it alive.
        unsafe pthread_cond_signal(condition)
    }

    /// Wakes all waiting threads.
    package func broadcast() {
        // SAFETY: `init` created the condition, and `self` keeps it alive.
        unsafe pthread_cond_broadcast(condition)
    }
}
