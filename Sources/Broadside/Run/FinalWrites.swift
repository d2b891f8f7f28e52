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
            case .stop: requests.handleSignal()
            case .reload: requests.reloadLater()
            case .finished, .timeout: break
            }
        }
    }
}

/// The outputs of a run that could not be written. A failure does not prevent the other outputs.
struct MissingOutputs {
    private var failures: [BroadsideError] = []

    /// Writes an output and records its failure.
    mutating func attempt(_ write: () throws(BroadsideError) -> Void) {
        do throws(BroadsideError) { try write() } catch { failures.append(error) }
    }

    /// Reports the failures at the end of a run.
    ///
    /// - Parameters:
    ///   - code: The exit code of the run without these failures.
    ///   - ledger: Path of the ledger.
    /// - Throws: All failures in one error, if every row is settled. Remaining rows and their cause
    ///   are more important: then the failures are only printed.
    func report(code: Int32, ledger: String) throws(BroadsideError) {
        guard let first = failures.first else { return }
        guard code == ExitCode.complete || code == ExitCode.openRows else {
            for failure in failures { standardErrorLine("broadside: \(failure.message)") }
            return
        }
        let what = failures.count == 1 ? "an output file is" : "output files are"
        throw BroadsideError(
            "every row is settled, but \(what) missing: "
                + "\(failures.map(\.message).joined(separator: "; ")): see "
                + "broadside ledger stats --ledger \(shellWord(ledger))",
            exitCode: first.exitCode)
    }
}
