/// Jobs for a thread that may block: what reactors must not do themselves goes in here.
///
/// Who puts a job here never waits: that there is room is the rule of those who ask.
package final class BoundedQueue<Element>: @unchecked Sendable {
    private let limit: Int
    private let monitor = Monitor()
    // Behind `monitor`:
    private var elements: [Element] = []
    private var isClosed = false

    /// - Parameter limit: The most jobs that those who ask have waiting.
    package init(limit: Int) { self.limit = limit }

    package func put(_ element: Element) {
        monitor.locked {
            precondition(elements.count < limit, "more jobs wait than are ever asked for")
            elements.append(element)
            monitor.signal()
        }
    }

    /// Waits for the next job; nil once the queue is closed.
    package func take() -> Element? {
        monitor.locked {
            while elements.isEmpty, !isClosed { monitor.wait() }
            return isClosed ? nil : elements.removeFirst()
        }
    }

    /// All jobs that wait, without waiting for one; none once the queue is closed.
    package func takeWaiting() -> [Element] {
        monitor.locked {
            guard !isClosed else { return [] }
            defer { elements = [] }
            return elements
        }
    }

    /// No job is taken any more.
    package func close() {
        monitor.locked {
            isClosed = true
            monitor.broadcast()
        }
    }
}
