import Campaign
import Support

extension ReactorStateMachine where Records: ~Copyable {
    /// Takes over what the run's target gives this reactor. One without connections takes no rows.
    mutating func followTarget(_ now: Now) {
        guard let target = run.directives.connectionShare else { return }
        let share = min(target, settings.connections)
        if share != connections.share {
            connections.share = share
            makeSlots(now)
        }
    }

    /// Makes the slots that the reactor's share needs.
    mutating func makeSlots(_ now: Now) {
        let records = run.directives.connectionShare != nil || settings.connections <= 32 ? 4 : 2
        let capacity = records * Records.sealedCount(recordPlaintextLimit) + 4096
        let rate = settings.milliRatePerConnection
        connections.grow {
            Connection(
                rateLimiter: RateLimiter(milliRate: rate, now: now.nanoseconds),
                outgoingCapacity: capacity)
        }
    }

    /// Connections that the kernel made and that carry requests or soon will.
    var standingConnections: Int { connections.standingCount }

    /// Connections that count towards the share.
    var activeConnections: Int { connections.activeCount }
}
