import BroadsideLedgers
import BroadsideObservability
import BroadsideSupport

/// The ledgers of rehearsals among those of a prune. If some ledgers were sent to Apple's servers,
/// then the dead tokens of another server, such as the simulator, may be alive.
struct RehearsalLedgers {
    /// Paths of the ledgers whose reports do not count, each with its server.
    private(set) var servers: [String: String] = [:]

    init(_ directories: [LedgerDirectory]) {
        var isOfApple = false
        for directory in directories {
            guard let server = Telemetry.read(from: directory)?.endpoint else { continue }
            if SendOptions.appleEnvironment(ofEndpoint: server) == nil {
                servers[directory.path] = server
            } else {
                isOfApple = true
            }
        }
        if !isOfApple { servers = [:] }
    }

    /// Whether the dead tokens of a ledger count. Warns if they do not.
    func believes(_ directory: LedgerDirectory) -> Bool {
        guard let server = servers[directory.path] else { return true }
        standardErrorLine(
            "broadside: warning: --ledger \(directory.path) was sent to \(printable(server)), but other "
                + "ledgers to Apple's servers: tokens that only this ledger reports as dead stay in the "
                + "list; to remove them, prune with this ledger alone")
        return false
    }
}
