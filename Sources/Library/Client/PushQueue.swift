import BroadsideRing
import BroadsideSupport
internal import Synchronization

/// Passes pushes from tasks to a client's thread.
final class PushQueue: Sendable {
    private struct State: Sendable {
        var new: [PushRequest] = []
        /// Credential that the thread has not taken yet; nil if there is none.
        var credential: ClientCredential?
        /// Number of pushes without an outcome, including those that the thread has not taken yet.
        var count = 0
        var isClosed = false
        var isOver = false
        var closers: [CheckedContinuation<Void, Never>] = []
    }

    private let limit: Int
    private let event: EventDescriptor
    private let state = Mutex(State())

    /// - Parameter limit: Maximum number of pushes that wait for a response.
    init(limit: Int) throws(BroadsideError) {
        self.limit = limit
        do {
            event = try EventDescriptor()
        } catch {
            throw BroadsideError("\(error)", exitCode: ExitCode.failure)
        }
    }

    /// Descriptor that is readable while there are new pushes or a new credential.
    var descriptor: Int32 { event.descriptor }

    /// Number of pushes without an outcome.
    var count: Int { state.withLock { $0.count } }

    // MARK: For tasks

    /// Adds a push; returns an error if there is no room or the client is closed.
    func put(_ request: PushRequest) -> CampaignError? {
        let (refusal, isFirst) = state.withLock { state -> (CampaignError?, Bool) in
            guard !state.isClosed else { return (Self.closed, false) }
            guard state.count < limit else {
                return (
                    CampaignError(
                        .busy,
                        "\(limit) pushes already wait for a response: await some before the next, or raise "
                            + "ClientOptions.pushesLimit"), false
                )
            }
            state.count += 1
            state.new.append(request)
            assert(state.new.count <= state.count, "a new push is awaited")
            return (nil, state.new.count == 1)
        }
        if isFirst { event.signal() }
        return refusal
    }

    private static var closed: CampaignError {
        CampaignError(.stopped, "the client is closed: make another one")
    }

    /// Makes the thread use another credential for all pushes that it has not sent yet.
    func replaceCredential(_ credential: ClientCredential) {
        state.withLock { $0.credential = credential }
        event.signal()
    }

    /// Refuses further pushes. The thread ends when all pushes have an outcome.
    func close() {
        state.withLock { $0.isClosed = true }
        event.signal()
    }

    /// Waits for the end of the thread.
    func end() async {
        await withCheckedContinuation { continuation in
            let isOver = state.withLock { state in
                if !state.isOver { state.closers.append(continuation) }
                return state.isOver
            }
            if isOver { continuation.resume() }
        }
    }

    // MARK: For the thread

    /// Wakes the thread.
    func wake() { event.signal() }

    /// Takes the new pushes, and the new credential if there is one.
    func takeNew() -> (requests: [PushRequest], credential: ClientCredential?, isClosed: Bool) {
        state.withLock { state in
            defer { (state.new, state.credential) = ([], nil) }
            return (state.new, state.credential, state.isClosed)
        }
    }

    /// Records that this many pushes have an outcome, which makes room for others.
    func release(_ count: Int) {
        state.withLock { state in
            state.count -= count
            assert(state.count >= 0, "a push is released once")
        }
    }

    /// Reports the end of the thread, and refuses pushes that came too late.
    func finish() {
        let (closers, late) = state.withLock { state in
            defer {
                state.closers = []
                state.new = []
            }
            assert(!state.isOver, "a thread ends once")
            assert(state.count == state.new.count, "each push was released")
            state.isClosed = true
            state.isOver = true
            return (state.closers, state.new)
        }
        for request in late { request.finish(.failure(Self.closed)) }
        for closer in closers { closer.resume() }
    }
}
