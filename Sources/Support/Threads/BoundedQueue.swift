/// A queue of jobs for a thread that may block. Reactors, which must not block, add the jobs.
///
/// A thread that adds a job never waits. Therefore, the threads that add jobs must not exceed the
/// limit on pending jobs.
package final class BoundedQueue<Element>: @unchecked Sendable {
    @usableFromInline let limit: Int
    @usableFromInline let monitor = Monitor()
    // Protected by `monitor`:
    @usableFromInline var elements: [Element] = []
    @usableFromInline var isClosed = false

    /// - Parameter limit: Maximum number of pending jobs, which the queue's users must observe.
    package init(limit: Int) { self.limit = limit }

    @inlinable
    package func put(_ element: Element) {
        monitor.locked {
            precondition(elements.count < limit, "more jobs wait than are ever asked for")
            elements.append(element)
            monitor.signal()
        }
    }

    /// Waits for the next job; nil once the queue is closed.
    @inlinable
    package func take() -> Element? {
        monitor.locked {
            while elements.isEmpty, !isClosed { monitor.wait() }
            return isClosed ? nil : elements.removeFirst()
        }
    }

    /// Takes all pending jobs without waiting; empty once the queue is closed.
    package func takeWaiting() -> [Element] {
        monitor.locked {
            guard !isClosed else { return [] }
            defer { elements = [] }
            return elements
        }
    }

    /// Closes the queue: jobs that are still pending are never handed out.
    package func close() {
        monitor.locked {
            isClosed = true
            monitor.broadcast()
        }
    }
}
