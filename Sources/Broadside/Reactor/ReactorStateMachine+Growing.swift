import Campaign
import Support

extension ReactorStateMachine where Records: ~Copyable {
    /// A draining connection and its replacement live side by side.
    static var slotsEachConnection: Int { 2 }

    /// Takes over what the run's target gives this reactor. One without connections takes no rows,
    /// and ends when the list does.
    mutating func followTarget(_ now: Now) {
        guard let target = shared.connectionTarget else { return }
        if target.version != targetVersion {
            targetVersion = target.version
            connectionShare = min(target.share(of: reactor), settings.connections)
            makeSlots(now)
        }
        // It never asked for rows, so nobody told it that there are none left.
        if firstConnections == 0, !chunks.isAtEnd, shared.isListOver { chunks.noteEnd() }
    }

    /// Makes the slots that the reactor's share needs, and one at least: a turn goes round them.
    mutating func makeSlots(_ now: Now) {
        let records = shared.connectionTarget != nil || settings.connections <= 32 ? 4 : 2
        let capacity = records * Records.sealedCount(recordPlaintextLimit) + 4096
        let pace = settings.milliRatePerConnection
        connections.grow(to: max(1, connectionShare) * Self.slotsEachConnection) {
            Connection(
                pacer: Pacer(milliRate: pace, now: now.nanoseconds), outgoingCapacity: capacity)
        }
    }

    /// A connection that takes another's place is a reconnect; the first ones and those by which the
    /// run grows take nobody's place, and those that end with the run get no successor.
    mutating func noteReconnect() {
        let opened = Int(statistics.connectionsOpened)
        let replacing = UInt64(max(0, opened - connectionShare))
        statistics.reconnects = max(statistics.reconnects, replacing)
    }

    /// Connections that the kernel made and that carry requests or soon will.
    package var standingConnections: Int {
        (0..<connections.count).count {
            connections[$0].phase == .handshaking || connections[$0].phase == .open
        }
    }

    /// Connections that count towards the share.
    package var activeConnections: Int {
        (0..<connections.count).count { connections[$0].isActive }
    }
}
