internal import Glibc
internal import Synchronization

/// Work that runs on another thread while its owner handles signals. A blocked operation, such as a
/// read from an unresponsive disk, then blocks only that thread. If no thread is available, the
/// owner's thread does the work.
package final class SideWork<Value>: @unchecked Sendable {
    private let isDone = Atomic<Bool>(false)
    /// Written before `isDone` is set, and read only after that.
    private var value: Value?
    private var thread: WorkerThread?

    /// Starts the work. At its end, `SignalWatch.notify` wakes the owner's thread.
    ///
    /// - Parameter work: The work. It has exclusive use of its captured state until there is a
    ///   result. An owner that does not wait for the result must never use that state.
    package init(_ work: @escaping () -> Value) {
        let owner = pthread_self()
        // SAFETY: the work belongs to the new thread alone; if there is none, it is done here.
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

    /// The result; nil while the work continues. For the owner only.
    package var result: Value? {
        guard isDone.load(ordering: .acquiring) else { return nil }
        if let thread {
            thread.joinAndRelease()
            self.thread = nil
        }
        return value
    }
}
