internal import Glibc

/// Jobs for a thread that may block: what reactors must not do themselves goes in here.
///
/// Its length is bounded by what asks: each reactor has at most a few jobs under way.
@safe package final class BlockingQueue<Element>: @unchecked Sendable {
    private let mutex: UnsafeMutablePointer<pthread_mutex_t>
    private let condition: UnsafeMutablePointer<pthread_cond_t>
    private var elements: [Element] = []
    private var isClosed = false

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

    package func put(_ element: Element) {
        unsafe pthread_mutex_lock(mutex)
        elements.append(element)
        unsafe pthread_cond_signal(condition)
        unsafe pthread_mutex_unlock(mutex)
    }

    /// Waits for the next job; nil once the queue is closed.
    package func take() -> Element? {
        unsafe pthread_mutex_lock(mutex)
        defer { unsafe pthread_mutex_unlock(mutex) }
        while elements.isEmpty, !isClosed {
            unsafe pthread_cond_wait(condition, mutex)
        }
        return isClosed ? nil : elements.removeFirst()
    }

    /// No job is taken any more.
    package func close() {
        unsafe pthread_mutex_lock(mutex)
        isClosed = true
        unsafe pthread_cond_broadcast(condition)
        unsafe pthread_mutex_unlock(mutex)
    }
}
