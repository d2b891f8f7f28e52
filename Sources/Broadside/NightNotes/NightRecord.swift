import BroadsideLedgers
import BroadsideSupport

/// Records the progress of a night's run in `NightNotes`, and writes the run's report page.
final class NightRecord: Sendable {
    private let notes: NightNotes
    private let date: NightDate

    init(_ notes: NightNotes, _ date: NightDate) {
        self.notes = notes
        self.date = date
    }

    /// Notes that the ledger is durable, so that requests may follow.
    func noteBegun() throws(BroadsideError) {
        guard notes.history[date]?.state != .begun else { return }
        try notes.add(.begun, of: date, at: Clock.now().wallMilliseconds)
    }

    /// Notes that nothing was sent, before the ledger is discarded.
    ///
    /// - Returns: Whether the note is durable. If not, the ledger must remain, because a night
    ///   without a ledger would count as lost.
    func withdraw() -> Bool {
        assert(notes.history[date]?.state == .begun, "a night that began is withdrawn")
        do throws(BroadsideError) {
            try notes.add(.withdrawn, of: date, at: Clock.now().wallMilliseconds)
            return true
        } catch {
            standardErrorLine("broadside: warning: \(error.message)")
            return false
        }
    }

    /// Writes the page of the run into its ledger. A failure only causes a warning.
    ///
    /// - Returns: Path of the page; nil if it was not written.
    func write(
        page bytes: [UInt8], into directory: LedgerDirectory, _ signals: SignalWatch,
        _ isUrgent: Bool
    ) -> String? {
        let ledger = directory.path
        let path = "\(ledger)/\(LedgerDirectory.pageName)"
        do throws(BroadsideError) {
            // By now, this path may have another ledger, or no ledger.
            guard try LedgerDirectory.isBegunLedgerIfThere(ledger) else { return nil }
            try signals.write(path, isUrgent: isUrgent) { () throws(BroadsideError) in
                try LedgerDirectory.writePage(bytes, into: ledger)
            }
            return path
        } catch {
            standardErrorLine(
                "broadside: warning: a report page will not be written: \(error.message)")
            return nil
        }
    }
}
