import BroadsideCampaigns
import BroadsideEngine
import BroadsideObservability
import BroadsideSupport
internal import Synchronization

/// State of a run, for tasks: the latest reports from the run's threads, and the tasks that wait
/// for a report.
final class RunState: RunObserver {
    private enum Phase: Sendable {
        case preparing
        case sending
        case ended(Result<RunResult, CampaignError>)
    }

    private struct State: Sendable {
        var phase = Phase.preparing
        var end: RunEnd?
        var progress: RunProgress?
        var start: CheckedContinuation<Result<Void, CampaignError>, Never>?
        var waiting: [CheckedContinuation<Result<RunResult, CampaignError>, Never>] = []
        var streams: [(number: Int, stream: AsyncStream<RunProgress>.Continuation)] = []
        var streamCount = 0
    }

    /// Maximum number of sequences of progress values. If another one is requested, the oldest
    /// sequence ends.
    static let streamsLimit = 64
    /// Maximum number of tasks that wait for the result.
    static let waitingLimit = 1024

    private let ledger: CampaignLedger
    private let logger: (any RunLogger)?
    private let metrics: (any RunMetrics)?
    private let state = Mutex(State())

    init(ledger: CampaignLedger, _ options: RunOptions) {
        self.ledger = ledger
        logger = options.logger
        metrics = options.metrics
    }

    // MARK: Reports of the run's threads

    func notice(_ lines: String) {
        guard let logger else { return }
        for line in lines.split(separator: "\n") { logger.log(RunLogEntry(line: String(line))) }
    }

    func begin() {
        let start = state.withLock { state in
            defer { state.start = nil }
            if case .ended = state.phase { assertionFailure("a run begins before it ends") }
            state.phase = .sending
            return state.start
        }
        start?.resume(returning: .success(()))
    }

    func take(_ snapshot: RunSnapshot) {
        let progress = RunProgress(snapshot)
        metrics?.record(progress)
        let streams = state.withLock { state in
            if case .ended = state.phase { assertionFailure("a run that has ended stands still") }
            state.progress = progress
            return state.streams
        }
        for (_, stream) in streams { stream.yield(progress) }
    }

    func take(_ event: RunEvent) { logger?.log(RunLogEntry(event)) }

    func end(_ end: RunEnd) {
        state.withLock { state in
            assert(state.end == nil, "a run has one end")
            state.end = end
        }
    }

    /// Records the end of the campaign's thread.
    ///
    /// - Parameter failure: Error of the run; nil if the run itself reported its end.
    func finish(_ failure: BroadsideError?) {
        let result = result(of: state.withLock { $0.end }, failure)
        let last = state.withLock { state -> State in
            if case .ended = state.phase { assertionFailure("a run ends once") }
            defer {
                state.phase = .ended(result)
                state.start = nil
                state.waiting = []
                state.streams = []
            }
            return state
        }
        for (_, stream) in last.streams { stream.finish() }
        for waiter in last.waiting { waiter.resume(returning: result) }
        let start = last.start
        switch result {
        case .success: start?.resume(returning: .success(()))
        // A run that had begun reports the error as its result.
        case .failure(let error) where error.result != nil: start?.resume(returning: .success(()))
        case .failure(let error): start?.resume(returning: .failure(error))
        }
    }

    /// The error of a run that was stopped so early that it left no ledger.
    static var neverBegan: CampaignError {
        CampaignError(.stopped, "the run was stopped before it began its ledger: start it again")
    }

    private func result(
        of end: RunEnd?, _ failure: BroadsideError?
    ) -> Result<RunResult, CampaignError> {
        let result = end.map { RunResult($0, ledger: ledger) }
        if let failure {
            var error = CampaignError(failure)
            error.result = result
            return .failure(error)
        }
        guard let end, let result else {
            return .failure(CampaignError(.unavailable, "the run ended without a report"))
        }
        guard result.outcome == .failed else { return .success(result) }
        var error = CampaignError(
            .init(exitCode: end.exitCode), end.message ?? "the run could not continue")
        error.result = result
        return .failure(error)
    }

    // MARK: Tasks

    /// Waits until the run begins to send, or has ended.
    func started() async throws(CampaignError) {
        let result = await withCheckedContinuation { continuation in
            let known = state.withLock { state -> Result<Void, CampaignError>? in
                switch state.phase {
                case .preparing:
                    precondition(state.start == nil, "one task starts a run")
                    state.start = continuation
                    return nil
                case .ended(.failure(let error)) where error.result == nil: return .failure(error)
                case .sending, .ended: return .success(())
                }
            }
            if let known { continuation.resume(returning: known) }
        }
        try result.get()
    }

    /// Waits for the end of the run.
    func ended() async throws(CampaignError) -> RunResult {
        let result = await withCheckedContinuation { continuation in
            let known = state.withLock { state -> Result<RunResult, CampaignError>? in
                if case .ended(let result) = state.phase { return result }
                guard state.waiting.count < Self.waitingLimit else {
                    return .failure(
                        CampaignError(
                            .unavailable,
                            "\(Self.waitingLimit) tasks wait for the result already: let one of "
                                + "them share it"))
                }
                state.waiting.append(continuation)
                return nil
            }
            if let known { continuation.resume(returning: known) }
        }
        return try result.get()
    }

    /// Progress of the run: the latest value, then each new one.
    func progress() -> AsyncStream<RunProgress> {
        let (sequence, stream) = AsyncStream.makeStream(
            of: RunProgress.self, bufferingPolicy: .bufferingNewest(1))
        let (latest, number, isOver, oldest) = state.withLock { state in
            if case .ended = state.phase {
                return (state.progress, 0, true, AsyncStream<RunProgress>.Continuation?.none)
            }
            state.streamCount += 1
            let oldest =
                state.streams.count == Self.streamsLimit ? state.streams.removeFirst().stream : nil
            state.streams.append((state.streamCount, stream))
            assert(state.streams.count <= Self.streamsLimit, "sequences are bounded")
            return (state.progress, state.streamCount, false, oldest)
        }
        oldest?.finish()
        if let latest { stream.yield(latest) }
        if isOver {
            stream.finish()
        } else {
            stream.onTermination = { [weak self] _ in
                self?.state.withLock { state in state.streams.removeAll { $0.number == number } }
            }
        }
        return sequence
    }
}
