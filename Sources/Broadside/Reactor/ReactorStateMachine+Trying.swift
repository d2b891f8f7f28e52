import Campaign

/// Connections whose server has to show first that it is good: after refusals, after trouble of its
/// address.
extension ReactorStateMachine where Records: ~Copyable {
    /// Whether a request may be made on a connection, so far as its server's past goes.
    ///
    /// Nearly always two comparisons: the rest is for connections without any response.
    @inline(__always)
    mutating func mayTry(_ index: Int, now: Now) -> Bool {
        let isTried = connections[index].answers != connections[index].answersAtRefusal
        if isTried { return true }
        return mayTryUnproven(index, now: now)
    }

    @inline(never)
    private mutating func mayTryUnproven(_ index: Int, now: Now) -> Bool {
        let until = connections[index].refusals.until
        if until > now.nanoseconds {
            nextPaced = min(nextPaced, until)
            return false
        }
        guard settings.binary == nil, connections[index].answers == 0 else { return true }
        switch addresses.leave(connections[index].address, slot: index, now: now.nanoseconds) {
        case .free: return true
        // One request; what follows depends on its response.
        case .trial: return connections[index].openCount == 0
        case .none(let until):
            if let until { nextPaced = min(nextPaced, until) }
            return false
        }
    }

    /// How many requests may be made at once on a connection that may be tried.
    func trialBudget(_ index: Int) -> Int {
        guard connections[index].answers == 0, settings.binary == nil,
            shared.addressHealth.hasTrouble
        else { return .max }
        let isGood = addresses.state(connections[index].address).failures == 0
        return isGood ? .max : max(0, 1 - connections[index].openCount)
    }

    /// A connection that tries its address and has no row to try it with leaves that to others.
    func releaseIdleTrial(_ index: Int, now: Now) {
        guard connections[index].phase == .open, connections[index].isReady,
            connections[index].answers == 0, connections[index].openCount == 0,
            shared.addressHealth.hasTrouble, !hasRowReady(now)
        else { return }
        addresses.ended(index)
    }
}
