import BroadsideLedgers
import BroadsideObservability
import BroadsideSupport

/// The ledgers of rehearsals among those of a prune. If some ledgers were sent to Apple's servers,
/// then the dead tokens of another server, such as the simulator, may be alive.
struct RehearsalLedgers {
    /// Paths of the ledgers whose reports do not count, each with its server.
    private var servers: [String: String] = [:]
    /// Paths of these ledgers that have runs to Apple's servers, too.
    private var mixed: Set<String> = []

    init(_ directories: [LedgerDirectory]) {
        var isOfApple = false
        for directory in directories {
            let known = directory.runsByEndpoint.keys
            let others = known.filter { SendOptions.appleEnvironment(ofEndpoint: $0) == nil }
            let hasApple = others.count < known.count
            if hasApple { isOfApple = true }
            guard let server = others.min() else { continue }
            servers[directory.path] = server
            if hasApple { mixed.insert(directory.path) }
        }
        if !isOfApple { servers = [:] }
    }

    /// Whether the dead tokens of a ledger count. Warns if they do not.
    func believes(_ directory: LedgerDirectory) -> Bool {
        guard let server = servers[directory.path] else { return true }
        let stay = "tokens that only this ledger reports as dead stay in the list"
        standardErrorLine(
            "broadside: warning: --ledger \(directory.path) was sent to \(printable(server)), "
                + (mixed.contains(directory.path)
                    ? "and in other runs to Apple's servers: \(stay)"
                    : "but other ledgers to Apple's servers: \(stay); to remove them, prune with "
                        + "this ledger alone"))
        return false
    }
}

extension LedgerDirectory {
    /// Numbers of the runs by host and port of their server. Excludes runs whose server is unknown.
    var runsByEndpoint: [String: Set<UInt32>] {
        guard let runs = try? readManifest().epochs else { return [:] }
        var numbers: [String: Set<UInt32>] = [:]
        for run in runs {
            if let server = run.endpoint { numbers[server, default: []].insert(run.number) }
        }
        // Earlier versions recorded only the latest run's server, for the report.
        if let last = runs.last, last.endpoint == nil,
            let server = Telemetry.read(from: self)?.endpoint
        {
            numbers[server, default: []].insert(last.number)
        }
        return numbers
    }
}
