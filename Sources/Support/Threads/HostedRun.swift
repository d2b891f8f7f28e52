internal import Glibc

/// Context of a run inside another program, its host. Signals, standard error and resource limits
/// belong to the host, so the run's threads use this object instead.
///
/// The host's requests have the effects of signals. Every thread that works for the run finds the
/// run in `current`, so several runs in one process do not share anything.
package final class HostedRun: @unchecked Sendable {
    /// The run that the current thread works for; nil in a command. A `WorkerThread` inherits the
    /// run from the thread that starts it.
    @TaskLocal package static var current: HostedRun?

    /// The signals that are blocked on the threads of a run. So the host's handlers run only on the
    /// host's own threads, and no signal interrupts a system call of the run.
    private static let blockedSignals = SignalSet([
        SIGHUP, SIGINT, SIGQUIT, SIGUSR1, SIGUSR2, SIGPIPE, SIGALRM, SIGTERM, SIGCHLD, SIGTSTP,
        SIGTTIN, SIGTTOU, SIGWINCH, SIGIO, SIGURG,
    ])

    /// Maximum number of pending stop requests. The second request stops the run without waiting,
    /// and further requests have no effect.
    private static let stopsLimit = 2

    /// Whether the process's resource limits may be raised.
    package let raisesLimits: Bool
    private let take: @Sendable (String) -> Void
    private let monitor = Monitor()
    // Protected by `monitor`:
    private var stops = 0
    private var isNotified = false
    private var isPreparationStopped = false

    /// - Parameters:
    ///   - raisesLimits: Whether the process's resource limits may be raised.
    ///   - notices: Receives the lines that a command would print on standard error. Any thread of
    ///     the run may call this closure.
    package init(raisesLimits: Bool = false, notices: @escaping @Sendable (String) -> Void) {
        self.raisesLimits = raisesLimits
        take = notices
    }

    /// Starts the run's first thread.
    ///
    /// - Throws: If the system provides no more threads (exit code 1).
    package func start(_ run: @escaping @Sendable () -> Void) throws(BroadsideError) {
        let before = SignalSet.blocked
        Self.blockedSignals.block()
        defer { before.become() }
        let thread = Self.$current.withValue(self) {
            Result { () throws(BroadsideError) in try WorkerThread(run) }
        }
        _ = try thread.get()
    }

    /// Requests the end of the run, as a signal does. After the first call, the run ends when
    /// requests in flight have their responses; after the second call, it ends at once.
    package func requestStop() {
        monitor.locked {
            stops = min(stops + 1, Self.stopsLimit)
            monitor.broadcast()
        }
    }

    /// Wakes the thread that waits for requests.
    package func notify() {
        monitor.locked {
            isNotified = true
            monitor.broadcast()
        }
    }

    func notice(_ lines: String) { take(lines) }

    func wait(milliseconds: Int) -> SignalWatch.Event {
        monitor.locked {
            if stops == 0, !isNotified { monitor.wait(milliseconds: milliseconds) }
            if stops > 0 {
                stops -= 1
                return .stop
            }
            defer { isNotified = false }
            return isNotified ? .finished : .timeout
        }
    }

    func awaitNotification(milliseconds: Int) {
        monitor.locked {
            if !isNotified { monitor.wait(milliseconds: milliseconds) }
            isNotified = false
        }
    }

    var isStopPending: Bool { monitor.locked { stops > 0 || isPreparationStopped } }

    func takeStop() {
        monitor.locked {
            stops = 0
            isPreparationStopped = false
        }
    }

    /// Requests the end of the preparatory work (all work before the first send), because the work
    /// takes too long.
    func stopPreparation() { monitor.locked { isPreparationStopped = true } }

    /// Returns whether `stopPreparation` ended the preparatory work. A stop that was requested
    /// meanwhile stays pending for the run.
    func endPreparation() -> Bool {
        monitor.locked {
            defer { isPreparationStopped = false }
            return isPreparationStopped
        }
    }
}
