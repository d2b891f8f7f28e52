import BroadsideLedgerFormat
import BroadsideLedgers
import BroadsideObservability
import BroadsideRows
import BroadsideSupport

/// Rows that earlier runs of a ledger sent to a server that is neither Apple's nor that of this run,
/// and that this run does not send again. If those runs were a rehearsal, the rows' devices get no
/// notification.
struct RowsElsewhere {
    /// Hosts and ports of the other servers, sorted.
    let servers: [String]
    /// Number of the rows.
    let count: UInt64
    /// Number of rows that all other runs sent.
    let othersCount: UInt64

    /// - Returns: nil if there are no such rows.
    init?(
        _ index: LedgerIndex, _ manifest: Manifest, _ directory: LedgerDirectory,
        _ options: SendOptions
    ) throws(BroadsideError) {
        let runs = try Self.runs(directory, options)
        guard !runs.isEmpty else { return nil }
        do throws(LedgerError) {
            var states: Set<RowState> = [.accepted, .rejected, .failed, .unknown]
            states = states.filter { !options.retry.contains($0) }
            if options.onLost == .record { states.insert(.inDoubt) }
            var (servers, count): ([String], UInt64) = ([], 0)
            for (server, numbers) in runs.sorted(by: { $0.key < $1.key }) {
                let rows = try index.rowCount(of: numbers, in: states)
                guard rows > 0 else { continue }
                servers.append(printable(server))
                count += rows
            }
            guard count > 0 else { return nil }
            let others = Set(manifest.epochs.map(\.number)).subtracting(runs.values.joined())
            (self.servers, self.count) = (servers, count)
            othersCount = try index.rowCount(
                of: others, in: [.accepted, .rejected, .failed, .unknown, .inDoubt])
        } catch {
            throw LedgerReader.unreadable(error, directory)
        }
    }

    /// Returns the numbers of the runs that went to such servers, by host and port.
    static func runs(
        _ directory: LedgerDirectory, _ options: SendOptions
    ) throws(BroadsideError) -> [String: Set<UInt32>] {
        let host = try Plan.endpoint(options).host.lowercased()
        return directory.runsByEndpoint.filter { server, _ in
            SendOptions.appleEnvironment(ofEndpoint: server) == nil
                && parseEndpoint(server)?.host.lowercased() != host
        }
    }

    var countText: String { count == 1 ? "1 row" : "\(grouped(count)) rows" }

    /// Warning of a run that sends the rest of the rows.
    ///
    /// - Parameter isNight: Whether `broadside night` chooses the ledger.
    func warning(isNight: Bool) -> String {
        "broadside: warning: \(countText) went to "
            + "\(servers.joined(separator: ", ")) in earlier runs, and "
            + "\(count == 1 ? "is" : "are") not sent again: if that was a rehearsal, "
            + (isNight
                ? "stop this start, and send the campaign with --name NAME"
                : "begin a new ledger")
    }

    /// Prints the warning if there are such rows.
    static func warn(
        _ index: LedgerIndex, _ manifest: Manifest, _ directory: LedgerDirectory,
        _ options: SendOptions
    ) throws(BroadsideError) {
        guard let rows = try RowsElsewhere(index, manifest, directory, options) else { return }
        standardErrorLine(rows.warning(isNight: options.nightFolder != nil))
    }
}
