internal import Glibc
internal import Synchronization

/// Work that another thread does while its owner takes signals: what hangs in it, such as a read of a
/// disk that does not respond, hangs there alone. Where no thread can be had, the owner's does it.
package final class SideWork<Value>: @unchecked Sendable {
    private let isDone = Atomic<Bool>(false)
    /// Set before `isDone`, and read only after it.
    private var value: Value?
    private var thread: WorkerThread?
    private let threadsBefore: Int?

    /// Starts it.
    ///
    /// - Parameter work: What it uses is its own until it has a result, and for good where the owner
    ///   does not wait for that. Its end is a ring of `SignalWatch`'s bell in the owner's thread.
    package init(_ work: @escaping () -> Value) {
        threadsBefore = WorkerThread.taskCount
        let owner = pthread_self()
        // SAFETY: the work is the new thread's alone; where there is none, it is done here.
        nonisolated(unsafe) let unsharedWork = work
        thread = try? WorkerThread { [self] in
            unsafe finish(unsharedWork())
            SignalWatch.notify(owner)
        }
        if thread == nil { finish(work()) }
    }

    private func finish(_ result: Value) {
        assert(!isDone.load(ordering: .relaxed), "work ends once")
        value = result
        isDone.store(true, ordering: .releasing)
    }

    /// What it came to; nil while it continues. Asked by the owner alone.
    package var result: Value? {
        guard isDone.load(ordering: .acquiring) else { return nil }
        if let thread {
            thread.join()
            WorkerThread.awaitTasks(threadsBefore)
            self.thread = nil
        }
        return value
    }
}
