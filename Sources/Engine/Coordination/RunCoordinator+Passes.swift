internal import BroadsidePolicy
package import BroadsideSupport
internal import Synchronization

/// Continuation of a run that sends in several passes, each of which has its own coordinator.
extension RunCoordinator {
    /// Continues the run of a coordinator whose pass has ended. The guards, the settings of the
    /// operator, the responses so far and whether APNs was reached apply to the whole run. A
    /// provider token that may not be renewed yet stays in use.
    package func continueRun(of previous: RunCoordinator, _ now: Now) {
        let canary = previous.canaryCounts
        previous.state.withLock { previous in
            state.withLock { state in
                state.continueRun(of: &previous, now)
                state.earlierCanary = canary
            }
        }
    }
}

extension RunCoordinator.State {
    fileprivate mutating func continueRun(of previous: inout Self, _ now: Now) {
        settings = previous.settings
        anyAccepted = previous.anyAccepted
        wasReachedEarlier = previous.wasReached
        swap(&guards, &previous.guards)
        topics = previous.topics
        topics?.beginPass()
        lastRefusal = previous.lastRefusal
        lastPushback = previous.lastPushback
        lastRejection = previous.lastRejection
        if previous.token.isFrozen(previous.tokenClock.seconds(now)) {
            token = previous.token
            tokenClock = previous.tokenClock
            updatesRefusedSince = previous.updatesRefusedSince
        }
    }
}
