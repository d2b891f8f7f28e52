extension ReactorStateMachine where Records: ~Copyable {
    /// What does not hold after a turn although it always has to; nil if all is well. Debug builds ask
    /// after each turn, and so does the deterministic simulation.
    var brokenInvariant: String? {
        rows.brokenInvariant
            ?? connections.brokenInvariant(inFlight: rows.inFlight)
            ?? brokenPermits
            ?? recorder.brokenInvariant
            ?? brokenTrial
    }

    /// All other connections wait for the one that tries an address again: it is one that goes there and has
    /// no response yet. A gateway may respond without a word, so that its connections keep theirs to the end.
    private var brokenTrial: String? {
        for (address, owner) in run.resources.addressHealth.trials
        where owner.reactor == run.reactor {
            let slot = owner.slot
            let goesThere =
                connections.addresses.entries[connections[slot].address].address == address
            if goesThere, isTrying(slot) { continue }
            return "\(address) is on trial by connection \(slot), which is "
                + "\(connections[slot].phase) with \(connections[slot].responses) responses"
        }
        return nil
    }

    private func isTrying(_ slot: Int) -> Bool {
        let respondsToEach = connections[slot].session.respondsToEach
        return switch connections[slot].phase {
        case .connecting, .handshaking: true
        // What a response about the token says, the run has to say.
        case .open:
            connections[slot].responses == 0 || !respondsToEach
                || connections.expiredOn.contains { $0.slot == slot }
        case .draining: !respondsToEach
        case .idle, .flushing, .closing: false
        }
    }

    private var brokenPermits: String? {
        (0...settings.abortAfter).contains(run.directives.permits)
            ? nil : "\(run.directives.permits) permits of \(settings.abortAfter)"
    }
}
