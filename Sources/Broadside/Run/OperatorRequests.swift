package import BroadsideEngine
package import BroadsidePolicy
package import BroadsideSupport

/// The requests of the operator to a run. They apply to the current pass and to all later passes,
/// so that no request is lost between the end of a pass and the start of the next.
///
///     begin(pass 1) ── requests ── end ── requests ── begin(pass 2) ── ...
///
/// The coordinator of a pass acts on the requests. The next one continues its run.
package final class OperatorRequests {
    /// Cause of the first request to stop; nil if there was none.
    package private(set) var stop: StopCause?
    /// Credential that was read since the start; nil: the initial credential is in use.
    var sender: Sender?
    /// Whether the credential is to be read again by the next pass.
    private var wantsReload = false
    /// Coordinator of the latest pass that has ended; nil if none has.
    private var previous: RunCoordinator?
    /// Coordinator of the current pass; nil before the first pass and between passes.
    private var coordinator: RunCoordinator?

    package init() {}

    /// Begins a pass. Its coordinator continues the run of the previous pass.
    package func begin(_ coordinator: RunCoordinator, _ now: Now) {
        assert(self.coordinator == nil, "passes follow each other")
        self.coordinator = coordinator
        if let previous { coordinator.continueRun(of: previous, now) }
        previous = nil
        if let stop { coordinator.stop(stop) }
    }

    /// Ends the pass.
    package func end() {
        previous = coordinator ?? previous
        coordinator = nil
    }

    /// Stops the pass, if there is one, and all later ones.
    package func stop(_ cause: StopCause) {
        stop = stop ?? cause
        coordinator?.stop(cause)
    }

    /// Handles a stop signal. The first request to stop waits for responses and for the final
    /// writes; a second one does not.
    func handleSignal() {
        if stop == nil { stop(.signal) } else { stopAtOnce() }
    }

    /// Stops without waiting for responses or for readers of the output, after a second signal.
    func stopAtOnce() {
        stop(.signal)
        coordinator?.stopAtOnce()
        SignalWatch.hurry()
    }

    /// Makes the next pass read the credential again.
    func reloadLater() { wantsReload = true }

    /// Returns whether the credential is to be read again, and forgets the request.
    func takeReload() -> Bool {
        defer { wantsReload = false }
        return wantsReload
    }
}
