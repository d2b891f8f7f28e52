package import BroadsideEngine
package import BroadsidePolicy

/// The requests of the operator to a run. They apply to the current pass and to all later passes,
/// so that no request is lost between the end of a pass and the start of the next.
///
///     begin(pass 1) ── requests ── end ── requests ── begin(pass 2) ── ...
///
/// The coordinator of a pass acts on the requests. It exists only during its pass.
package final class OperatorRequests {
    /// Cause of the first request to stop; nil if there was none.
    package private(set) var stop: StopCause?
    /// Credential that was read since the start; nil: the initial credential is in use.
    var sender: Sender?
    /// Whether the credential is to be read again by the next pass.
    private var wantsReload = false
    /// Settings at the end of the latest pass; nil: the settings in the options.
    private var settings: OperatorSettings?
    /// Coordinator of the current pass; nil before the first pass and between passes.
    private var coordinator: RunCoordinator?

    package init() {}

    /// Begins a pass. Replaces the coordinator's settings, which are from the options, by those of
    /// the previous pass.
    package func begin(_ coordinator: RunCoordinator) {
        assert(self.coordinator == nil, "passes follow each other")
        self.coordinator = coordinator
        if let settings { coordinator.settings = settings }
        if let stop { coordinator.stop(stop) }
    }

    /// Ends the pass.
    package func end() {
        if let coordinator { settings = coordinator.settings }
        coordinator = nil
    }

    /// Stops the pass, if there is one, and all later ones.
    package func stop(_ cause: StopCause) {
        stop = stop ?? cause
        coordinator?.stop(cause)
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
