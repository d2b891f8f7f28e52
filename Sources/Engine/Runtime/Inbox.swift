import BroadsideRing
import BroadsideSupport
internal import Glibc
internal import Synchronization

/// What other threads have for a reactor: completions that do not come from its ring. An eventfd
/// tells the ring that something lies here.
final class Inbox: @unchecked Sendable {
    private let event: EventDescriptor
    private let waiting = Mutex<[ReactorCompletionBox]>([])

    /// A completion on its way between threads; the chunk in it is handed over, not shared.
    struct ReactorCompletionBox: @unchecked Sendable {
        let completion: ReactorCompletion
    }

    init() throws(BroadsideError) {
        do {
            event = try EventDescriptor()
        } catch {
            throw BroadsideError("\(error)", exitCode: 1)
        }
    }

    /// Readable while something lies here.
    var eventDescriptor: Int32 { event.descriptor }

    func put(_ completion: ReactorCompletion) {
        let box = ReactorCompletionBox(completion: completion)
        waiting.withLock { $0.append(box) }
        wake()
    }

    /// Wakes the reactor without telling it anything: it looks at the shared state.
    func wake() {
        event.signal()
    }

    func takeAll() -> [ReactorCompletionBox] {
        waiting.withLock { waiting in
            defer { waiting.removeAll(keepingCapacity: true) }
            return waiting
        }
    }
}
