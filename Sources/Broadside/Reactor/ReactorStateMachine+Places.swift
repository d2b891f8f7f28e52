import Campaign
internal import Glibc

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

    /// A record layer's trouble, with its place where it does not name one.
    func words(_ error: RecordLayerError, _ index: Int) -> String {
        error.namesPlace ? error.message : "\(place(index)): \(error.message)"
    }

    /// A connection that ended without a word of ours.
    func wordsOfEnd(_ index: Int, errno: Int32) -> String {
        if errno == 0, let error = connections[index].records?.closedEarly { return error.message }
        let cause =
            unsafe errno == 0
            ? "the server closed the connection" : String(cString: unsafe strerror(errno))
        return "\(place(index)): \(cause)"
    }
}
