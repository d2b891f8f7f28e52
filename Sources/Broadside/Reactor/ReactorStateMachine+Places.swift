import Campaign
import Support

extension ReactorStateMachine where Records: ~Copyable {
    /// Who is at a connection's other end, for messages: behind a proxy the proxy alone until its
    /// tunnel stands.
    func place(_ index: Int) -> String {
        let address = addresses.entries[connections[index].address].address
        guard let target = settings.tunnelTarget else { return "\(address)" }
        let isProxys =
            connections[index].phase == .connecting
            || connections[index].records?.closedEarly != nil
        return isProxys ? "the proxy \(address)" : "\(target) through the proxy \(address)"
    }

    /// The step in which a connection that fails now is.
    func step(_ index: Int) -> ConnectionTrouble.Kind {
        let isProxys = settings.tunnelTarget != nil
        switch connections[index].phase {
        case .idle, .connecting: return isProxys ? .proxy : .connect
        case .handshaking: return connections[index].records?.closedEarly != nil ? .proxy : .tls
        case .open where !connections[index].isReady: return .protocol
        case .open, .draining, .flushing, .closing: return .lost
        }
    }

    /// What went wrong with a connection now.
    func trouble(
        _ index: Int, _ problem: String, step: ConnectionTrouble.Kind? = nil
    ) -> ConnectionTrouble {
        ConnectionTrouble(step ?? self.step(index), with: place(index), problem)
    }

    /// A record layer's trouble.
    func trouble(_ index: Int, _ error: RecordLayerError) -> ConnectionTrouble {
        error.namesPlace
            ? ConnectionTrouble(step(index), error.message) : trouble(index, error.message)
    }

    /// A connection that ended without a word of ours.
    func troubleOfEnd(_ index: Int, errno: Int32) -> ConnectionTrouble {
        if errno == 0, let error = connections[index].records?.closedEarly {
            return ConnectionTrouble(step(index), error.message)
        }
        return trouble(
            index, errno == 0 ? "the server closed the connection" : describe(errno: errno))
    }
}
