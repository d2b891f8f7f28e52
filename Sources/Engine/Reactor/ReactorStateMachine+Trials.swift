import Campaign
import Support

/// Connections whose server has to show first that it is good: after refusals, after trouble of its
/// address, after connections to it that lost rows.
extension ReactorStateMachine where Records: ~Copyable {
    /// How many requests may be made on a connection, so far as its server's past goes.
    ///
    /// Nearly always two comparisons: the rest is for connections without a response since their start
    /// or since a refusal, and for those to an address that loses rows.
    @inline(__always)
    mutating func tryBudget(_ index: Int, now: Now) -> Int {
        connections[index].trust.isComplete ? .max : limitedBudget(index, now: now)
    }

    @inline(never)
    private mutating func limitedBudget(_ index: Int, now: Now) -> Int {
        let budget =
            connections[index].trust.hasResponded ? .max : unprovenBudget(index, now: now)
        return connections[index].trust.mustProve ? min(budget, provingBudget(index)) : budget
    }

    /// Requests that a connection's responses are worth, less those in flight.
    private mutating func provingBudget(_ index: Int) -> Int {
        let limit = connections[index].session.requestLimit
        if connections[index].trust.endProof(requestLimit: limit) {
            connections.addresses.proved(connections[index].address)
        }
        return max(0, connections[index].trust.worth - connections[index].openCount)
    }

    private mutating func unprovenBudget(_ index: Int, now: Now) -> Int {
        let until = connections[index].trust.refusals.until
        if until > now.nanoseconds {
            admission.wake(at: until)
            // A refusal says nothing of the address: meanwhile another connection may try it.
            if connections[index].openCount == 0 { connections.addresses.releaseTrial(index) }
            return 0
        }
        guard connections[index].session.respondsToEach, connections[index].responses == 0 else {
            return .max
        }
        // Without a row to try it with, leave to try the address stays with others.
        guard hasRowReady(now) else { return .max }
        switch connections.addresses.leave(
            connections[index].address, slot: index, now: now.nanoseconds)
        {
        case .free: return .max
        // One request; what follows depends on its response.
        case .trial: return max(0, 1 - connections[index].openCount)
        case .none(let until):
            if let until { admission.wake(at: until) }
            return 0
        }
    }

    /// A connection that tries its address and has no row to try it with leaves that to others.
    mutating func releaseIdleTrial(_ index: Int, now: Now) {
        guard connections[index].phase == .open, connections[index].isReady,
            connections[index].session.respondsToEach, connections[index].responses == 0,
            connections[index].openCount == 0, run.resources.addressHealth.hasTrouble,
            !hasRowReady(now)
        else { return }
        connections.addresses.releaseTrial(index)
    }
}
