/// Jobs for a thread that may block: what reactors must not do themselves goes in here.
///
/// Its length is bounded by what asks: each reactor has at most a few jobs under way.
package final class BlockingQueue<Element>: @unchecked Sendable {
    private let monitor = Monitor()
    // Behind `monitor`:
    private var elements: [Element] = []
    private var isClosed = false

    package init() {}

    package func put(_ element: Element) {
        monitor.locked {
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
