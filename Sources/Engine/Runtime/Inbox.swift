import BroadsideRing
import BroadsideSupport
internal import Glibc
internal import Synchronization

/// Completions that other threads pass to a reactor. An eventfd wakes the reactor's ring.
final class Inbox: @unchecked Sendable {
    private let event: EventDescriptor
    private let waiting = Mutex<[ReactorCompletionBox]>([])

    /// A completion that one thread passes to another, with ownership of its chunk.
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

    /// Descriptor that is readable while there are completions.
    var eventDescriptor: Int32 { event.descriptor }

    func put(_ completion: ReactorCompletion) {
        let box = ReactorCompletionBox(completion: completion)
        waiting.withLock { $0.append(box) }
        wake()
    }

    /// Wakes the reactor without a completion, so that it checks shared state.
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
