import BroadsideObservability
internal import BroadsidePolicy
import BroadsideSupport
internal import Glibc

/// Number of connections and reactors at the start of a run, and limits on their growth.
struct RunShape: Equatable {
    var connections: Int
    /// Limit on connections; equal to `connections` if the run does not grow.
    var connectionsMost: Int
    /// Number of reactors, each with a thread. Reactors without connections wait.
    var reactors: Int
    /// Number of reactors that have connections from the start.
    var reactorsAtFirst: Int

    /// Whether the run may add connections.
    var grows: Bool { connectionsMost > connections }

    /// A list below this size is sent on one connection, because the handshake is most of the work.
    static let smallListByteCount: UInt64 = 65 * 1000
    /// A list below this size gains nothing from a second reactor.
    static let middlingListByteCount: UInt64 = 65 * 200_000
    /// Descriptors per reactor, for its ring, its inbox, its ledger segment and a reserve.
    static let descriptorsEachReactor = 4
    /// Other descriptors: standard streams, list, ledger with its control socket, summary, name
    /// lookups.
    static let otherDescriptors = 32

    /// - Parameters:
    ///   - cores: Number of the system's processors.
    ///   - descriptors: Limit on the process's open files.
    init(
        _ options: SendOptions, listByteCount: UInt64, cores: Int, descriptors: UInt64
    ) {
        let chosen = Self.chooseConnections(options, listByteCount: listByteCount)
        connections = options.connections ?? chosen
        let reactors = min(
            options.reactors
                ?? Self.chooseReactors(options, listByteCount: listByteCount, cores: cores),
            Self.reactorsMost(rate: options.rate))
        // The run does not grow if the operator has set connections, or streams, which also
        // determine the number of requests in flight. The gateway's protocol has no limits that
        // could be a bottleneck.
        guard options.connections == nil, options.maxStreams == nil,
            options.wireProtocol == .http2, listByteCount >= Self.smallListByteCount
        else {
            connectionsMost = connections
            self.reactors = min(reactors, connections)
            reactorsAtFirst = self.reactors
            return
        }
        let taken = Self.descriptors(0, reactors: reactors) + Self.outletDescriptors(options)
        // A draining connection and its replacement need a descriptor each.
        let left = descriptors - min(descriptors, UInt64(taken))
        connectionsMost = max(
            connections, min(ConnectionGrowth.connectionsMost, Int(min(left, 1 << 20)) / 2))
        self.reactors = min(reactors, connectionsMost)
        reactorsAtFirst = options.reactors == nil ? 1 : min(reactors, connections)
        assert(
            reactorsAtFirst <= connections && reactorsAtFirst <= self.reactors,
            "each reactor that starts at first has a connection")
    }

    /// Number of files that a run has open, without those of `outletDescriptors`.
    static func descriptors(_ connections: Int, reactors: Int) -> Int {
        connections + descriptorsEachReactor * reactors + otherDescriptors
    }

    /// Number of files that the sockets of `--control` and `--metrics` and their clients have open
    /// at most.
    static func outletDescriptors(_ options: SendOptions) -> Int {
        let hasEndpoint = options.metrics.map { (try? MetricsOutlet.address($0)) != nil } ?? false
        return (options.control == nil ? 0 : UnixLineServer.descriptorsLimit)
            + (hasEndpoint ? MetricsEndpoint.descriptorsLimit : 0)
    }

    /// Checks that the process may open the files that a run needs.
    ///
    /// - Parameter allowed: Limit on the process's open files.
    /// - Throws: Exit code 2 if the options set a number of connections and fewer would fit. If not,
    ///   the machine is the cause, not the request: exit code 1.
    func checkOpenFiles(_ options: SendOptions, allowed: UInt64) throws(BroadsideError) {
        let outlets = Self.outletDescriptors(options)
        let needed = Self.descriptors(connections, reactors: reactors) + outlets
        guard allowed < UInt64(needed) else { return }
        let least = Self.descriptors(1, reactors: 1) + outlets
        let isPossible = allowed >= UInt64(least)
        let problem =
            "needs \(needed) open files, but only \(allowed) are allowed here: raise the limit "
            + "(ulimit -n \(needed))"
        if isPossible, let chosen = options.connections {
            throw .usage("connections", "\(chosen) \(problem) or use fewer connections")
        }
        throw BroadsideError(
            "a run \(problem)" + (isPossible ? ", or add --connections 1" : ""),
            exitCode: ExitCode.failure)
    }

    /// Address space that a run needs, bytes. Most of it is never used: the C library reserves a
    /// range for the memory of each thread.
    static func addressSpace(reactors: Int) -> UInt64 { (512 + 128 * UInt64(reactors)) << 20 }

    /// Number of threads that a run starts, without those for metrics, traces and hooks: each
    /// reactor has a thread, and a kernel thread for its ledger's disk.
    static func threads(reactors: Int) -> Int { 2 * reactors + otherThreads }

    /// Number of threads besides the threads of reactors: name lookup, list, output to stderr and
    /// stdout, reloading of credentials, telemetry.
    private static let otherThreads = 6

    /// Returns the number of connections. Apple encourages several connections for a large volume.
    /// Four connections are enough for most campaigns.
    private static func chooseConnections(_ options: SendOptions, listByteCount: UInt64) -> Int {
        if listByteCount < smallListByteCount { return options.reactors ?? 1 }
        if let rate = options.rate, rate.last <= 500 { return 1 }
        return max(4, options.reactors ?? 1)
    }

    /// Returns the number of reactors. One reactor saturates a core; the row splitter and the
    /// kernel also need cores.
    private static func chooseReactors(
        _ options: SendOptions, listByteCount: UInt64, cores: Int
    ) -> Int {
        if listByteCount < middlingListByteCount { return 1 }
        if let rate = options.rate, rate.last <= 100_000 { return 1 }
        return max(1, min(cores / 2, 8))
    }

    /// Limit on reactors of a run with a rate. The rate permits a burst of its requests in 10 ms. Each
    /// reactor may send one request at any time, so more reactors would exceed this burst.
    private static func reactorsMost(rate: SendRate?) -> Int {
        rate.map { max(1, Int(min($0.last / 100, 1_000))) } ?? .max
    }

    /// Human-readable description, to append to the number of connections.
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
