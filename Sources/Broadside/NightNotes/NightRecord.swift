import BroadsideSupport
internal import Synchronization

/// What a run notes of the night that it sends, and the page that it leaves.
final class NightRecord: Sendable {
    private let notes: NightNotes
    private let date: NightDate
    private let page = Mutex<[UInt8]?>(nil)

    init(_ notes: NightNotes, _ date: NightDate) {
        self.notes = notes
        self.date = date
    }

    /// Notes that requests may follow; the ledger is durable.
    func noteBegun() throws(BroadsideError) {
        guard notes.history[date]?.state != .begun else { return }
        try notes.add(.begun, of: date, at: Clock.now().wallMilliseconds)
    }

    /// Notes that nothing was sent, before the ledger is discarded.
    ///
    /// - Returns: Whether that is durable. If not, the ledger has to stay: without it the night would be a lost one.
    func withdraw() -> Bool {
        do throws(BroadsideError) {
            try notes.add(.withdrawn, of: date, at: Clock.now().wallMilliseconds)
            return true
        } catch {
            standardErrorLine("broadside: warning: \(error.message)")
            return false
        }
    }

    /// Keeps the page about the run until that has ended.
    func keep(page bytes: [UInt8]) { page.withLock { $0 = bytes } }

    /// The page about the run; nil if it did not get so far.
    func takePage() -> [UInt8]? {
        page.withLock { page in
            defer { page = nil }
            return page
        }
    }
}
