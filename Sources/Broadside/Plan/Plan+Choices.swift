internal import BroadsidePolicy
internal import Glibc

/// How many connections and reactors a run begins with, and how many it may grow to.
struct RunShape: Equatable {
    var connections: Int
    /// The same as `connections` where the run does not grow by itself.
    var connectionsMost: Int
    /// Threads; those without connections wait.
    var reactors: Int
    /// Reactors that have connections from the start.
    var reactorsAtFirst: Int

    /// True where the run decides for itself while it goes on.
    var grows: Bool { connectionsMost > connections }

    /// Lists shorter than this are sent on one connection: its handshake is most of the work.
    static let smallListByteCount: UInt64 = 65 * 1000
    /// Lists shorter than this gain nothing from a second reactor.
    static let middlingListByteCount: UInt64 = 65 * 200_000
    /// A reactor's ring, its inbox, its segment of the ledger.
    static let descriptorsEachReactor = 4
    /// Standard streams, list, ledger, summary, names being resolved.
    static let otherDescriptors = 32

    /// - Parameters:
    ///   - cores: Processors of the machine.
    ///   - descriptors: The most files that the process may open.
    init(
        _ options: SendOptions, listByteCount: UInt64, cores: Int, descriptors: UInt64
    ) {
        let chosen = Self.chooseConnections(options, listByteCount: listByteCount)
        connections = options.connections ?? chosen
        let reactors =
            options.reactors
            ?? Self.chooseReactors(options, listByteCount: listByteCount, cores: cores)
        // What an operator fixed stays as it is: also the streams, which are the other half of how
        // much is in flight. The gateway's protocol tells no limits that could hold anything up.
        guard options.connections == nil, options.maxStreams == nil,
            options.wireProtocol == .http2, listByteCount >= Self.smallListByteCount
        else {
            connectionsMost = connections
            self.reactors = min(reactors, connections)
            reactorsAtFirst = self.reactors
            return
        }
        // One that drains and the one in its place need a descriptor each.
        let left = descriptors - min(descriptors, UInt64(Self.descriptors(0, reactors: reactors)))
        connectionsMost = max(
            connections, min(ConnectionGrowth.connectionsMost, Int(min(left, 1 << 20)) / 2))
        self.reactors = min(reactors, connectionsMost)
        reactorsAtFirst = options.reactors == nil ? 1 : min(reactors, connections)
    }

    /// Files that a run has open.
    static func descriptors(_ connections: Int, reactors: Int) -> Int {
        connections + descriptorsEachReactor * reactors + otherDescriptors
    }

    /// Apple encourages several connections for volume. Four carry more than most campaigns ask.
    private static func chooseConnections(_ options: SendOptions, listByteCount: UInt64) -> Int {
        if listByteCount < smallListByteCount { return options.reactors ?? 1 }
        if let rate = options.rate, rate.last <= 500 { return 1 }
        return max(4, options.reactors ?? 1)
    }

    /// One reactor saturates a core; the list's cutter and the kernel want some of the rest.
    private static func chooseReactors(
        _ options: SendOptions, listByteCount: UInt64, cores: Int
    ) -> Int {
        if listByteCount < middlingListByteCount { return 1 }
        if let rate = options.rate, rate.last <= 100_000 { return 1 }
        return max(1, min(cores / 2, 8))
    }

    /// For people, behind `connections`.
    func words(_ options: SendOptions) -> String {
        let chosen =
            options.connections != nil
            ? "" : grows ? " (up to \(connectionsMost) if that is faster)" : " (chosen)"
        let threads =
            reactors > reactorsAtFirst
            ? "\(reactorsAtFirst) reactor\(reactorsAtFirst == 1 ? "" : "s") (up to \(reactors))"
            : "\(reactors) reactor\(reactors == 1 ? "" : "s")"
        return "\(connections)\(chosen) on \(threads)"
    }
}
