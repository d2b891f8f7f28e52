import BroadsideSupport
internal import Synchronization

/// Notes of a run about its night, and its page.
final class NightRecord: Sendable {
    private let notes: NightNotes
    private let date: NightDate
    private let page = Mutex<[UInt8]?>(nil)

    init(_ notes: NightNotes, _ date: NightDate) {
        self.notes = notes
        self.date = date
    }

    /// Records that requests may follow; the ledger is durable.
    func noteBegun() throws(BroadsideError) {
        guard notes.history[date]?.state != .begun else { return }
        try notes.add(.begun, of: date, at: Clock.now().wallMilliseconds)
    }

    /// Records that nothing was sent, before the ledger is discarded.
    ///
    /// - Returns: Whether the note is durable. If not, the ledger must remain: without it the night
    ///   would count as lost.
    func withdraw() -> Bool {
        do throws(BroadsideError) {
            try notes.add(.withdrawn, of: date, at: Clock.now().wallMilliseconds)
            return true
        } catch {
            standardErrorLine("broadside: warning: \(error.message)")
            return false
        }
    }

    /// Stores the run's page until the run has ended.
    func keep(page bytes: [UInt8]) { page.withLock { $0 = bytes } }

    /// Page of the run; nil if the run ended before it was made.
    func takePage() -> [UInt8]? {
        page.withLock { page in
            defer { page = nil }
            return page
        }
    }
}
