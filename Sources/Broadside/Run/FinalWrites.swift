import BroadsideEngine
import BroadsideSupport

/// Result of claiming the ledger at the end of a run.
private struct EndClaim: Sendable {
    /// Description of the failure; nil: the claim was made.
    let problem: String?
}

/// Waits at the end of a pass for writes on other threads. Each wait is limited, because the disk
/// may hang. After a second signal, there is no wait.
struct FinalWrites {
    private let session: LedgerSession
    private let coordinator: RunCoordinator
    private let requests: OperatorRequests
    private let trace: FrameTraceFile?
    private let signals: SignalWatch

    init(
        _ session: LedgerSession, _ coordinator: RunCoordinator, _ requests: OperatorRequests,
        trace: FrameTraceFile?, _ signals: SignalWatch
    ) {
        self.session = session
        self.coordinator = coordinator
        self.requests = requests
        self.trace = trace
        self.signals = signals
    }

    /// Waits for the last status files, metrics and trace of a pass.
    func awaitTelemetry(_ monitor: RunMonitor) {
        let trace = trace
        awaitDisk {
            monitor.isSaving || monitor.isPublishing || trace?.isWriting ?? false
        }
        monitor.abandonWriting()
        if let failure = trace?.failure {
            standardErrorLine("broadside: warning: \(failure): the trace is incomplete")
        }
    }

    /// Lets another thread claim the ledger once more. A failure loses nothing in the ledger, so it
    /// does not change the exit code.
    func awaitClaim(_ monitor: RunMonitor) {
        var end: EndClaim?
        if !monitor.isSaving {
            // SAFETY: no other thread uses the session's directory until the claim is made, or
            // afterwards.
            nonisolated(unsafe) let session = session
            let claimer = BackgroundWorker<Void, EndClaim>(wakes: true) { _ in
                EndClaim(problem: unsafe session.claimEnd())
            }
            do throws(BroadsideError) {
                try claimer.put(())
            } catch {
                end = EndClaim(problem: error.message)
            }
            awaitDisk {
                if end == nil { end = claimer.take() }
                return end == nil
            }
        }
        let missing =
            coordinator.isStoppingAtOnce
            ? "a second signal ended the wait for its disk"
            : "its disk accepts no data at the moment"
        guard let problem = end.map(\.problem) ?? missing else { return }
        monitor.reportEndClaim(problem, Clock.now())
    }

    /// Waits for another thread's write.
    private func awaitDisk(while isWriting: () -> Bool) {
        for _ in 0..<ListEnd.diskPatience / 10 where !coordinator.isStoppingAtOnce {
            guard isWriting() else { return }
            switch signals.wait(milliseconds: 10) {
            case .stop: requests.stopAtOnce()
            case .reload: requests.reloadLater()
            case .finished, .timeout: break
            }
        }
    }
}
