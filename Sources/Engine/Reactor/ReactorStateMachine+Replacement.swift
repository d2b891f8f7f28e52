import Campaign
import Support

extension ReactorStateMachine where Records: ~Copyable {
    /// Replaces connections that were made from what has changed since, one after the other: one
    /// drains, its successor opens, and only when that is ready comes the next one's turn.
    /// Requests in flight get their answers on the connection that they went out on.
    mutating func replaceOutdated(_ now: Now) {
        guard case .running = phase, !run.directives.isStopping else { return }
        let version = run.directives.sessionVersion
        var outdated: Int?
        var active = 0
        for index in 0..<connections.count where connections[index].isActive {
            active += 1
            guard connections[index].phase == .open, connections[index].isReady else {
                // One of the new kind is on its way: the others carry the rows meanwhile. One of
                // the old kind that does not stand yet need not be waited for.
                if connections[index].sessionVersion == version { return }
                outdated = index
                continue
            }
            if connections[index].sessionVersion != version, outdated == nil { outdated = index }
        }
        guard let outdated else { return }
        guard connections[outdated].phase == .open else {
            beginClose(outdated, now: now)
            return
        }
        // A successor that could not be opened yet leaves a gap: it is filled first, so that a
        // changed credential that does not work leaves all but one connection in place.
        guard active >= connections.share || !hasWork else { return }
        drain(outdated, now: now)
    }
}
