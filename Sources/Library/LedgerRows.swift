internal import BroadsideLedgerFormat
import BroadsideLedgers
import BroadsideRows
import BroadsideSupport
internal import FoundationEssentials

/// Rows of a ledger. A separate thread reads them on demand, and at most some thousands are in
/// memory.
public struct LedgerRows: AsyncSequence, Sendable {
    /// A row.
    public typealias Element = LedgerRow
    /// Error of reading the ledger.
    public typealias Failure = CampaignError

    let ledger: URL
    let state: RowState?
    let reasons: [String]

    /// Creates an iterator, which begins to read.
    public func makeAsyncIterator() -> Iterator { Iterator(RowFeed(self)) }

    /// Position in the sequence of rows.
    public struct Iterator: AsyncIteratorProtocol {
        private let feed: Feed
        private var rows: ArraySlice<LedgerRow> = []

        /// Ends the reading thread when the last copy of an iterator is released.
        private final class Feed: Sendable {
            let rows: RowFeed
            init(_ rows: RowFeed) { self.rows = rows }
            deinit { rows.close() }
        }

        init(_ feed: RowFeed) { self.feed = Feed(feed) }

        /// Returns the next row; nil at the end.
        public mutating func next() async throws(CampaignError) -> LedgerRow? {
            while rows.isEmpty {
                guard let more = try await feed.rows.next() else { return nil }
                rows = more[...]
            }
            return rows.removeFirst()
        }

        /// Returns the next row; nil at the end.
        public mutating func next(
            isolation: isolated (any Actor)?
        ) async throws(CampaignError) -> LedgerRow? {
            while rows.isEmpty {
                guard let more = try await feed.rows.next() else { return nil }
                rows = more[...]
            }
            return rows.removeFirst()
        }
    }
}

/// Passes rows from a reading thread to a task. At most one piece of rows waits for the task; the
/// thread waits until the task has taken it.
final class RowFeed: @unchecked Sendable {
    private typealias Taken = Result<[LedgerRow]?, CampaignError>

    private let source: LedgerRows
    private let monitor = Monitor()
    // Protected by `monitor`:
    private var hasThread = false
    private var piece: Taken?
    private var isAtEnd = false
    private var isClosed = false
    private var waiter: CheckedContinuation<Taken, Never>?

    init(_ source: LedgerRows) { self.source = source }

    // MARK: For the task

    /// Returns the next rows; nil at the end.
    func next() async throws(CampaignError) -> [LedgerRow]? {
        start()
        let taken = await withTaskCancellationHandler {
            await withCheckedContinuation { continuation in wait(continuation) }
        } onCancel: {
            close()
        }
        return try taken.get()
    }

    private func start() {
        let isFirst = monitor.locked {
            defer { hasThread = true }
            return !hasThread
        }
        guard isFirst else { return }
        do throws(BroadsideError) {
            try HostedRun { _ in }.start { [self] in read() }
        } catch {
            put(.failure(CampaignError(error)), isLast: true)
        }
    }

    private func wait(_ continuation: CheckedContinuation<Taken, Never>) {
        let known = monitor.locked { () -> Taken? in
            if isClosed { return .failure(Self.cancelled) }
            if let piece {
                self.piece = nil
                monitor.signal()
                return piece
            }
            if isAtEnd { return .success(nil) }
            precondition(waiter == nil, "one task reads the rows of an iterator")
            waiter = continuation
            return nil
        }
        if let known { continuation.resume(returning: known) }
    }

    /// Stops reading.
    func close() {
        let waiter = monitor.locked {
            defer { self.waiter = nil }
            isClosed = true
            piece = nil
            monitor.signal()
            return self.waiter
        }
        waiter?.resume(returning: .failure(Self.cancelled))
    }

    private static var cancelled: CampaignError {
        CampaignError(.stopped, "reading the ledger was cancelled: read it again")
    }

    // MARK: For the thread

    private func read() {
        var reader = LedgerRowReader()
        var isWanted = true
        do throws(BroadsideError) {
            let directory = try path(source.ledger, of: "ledger")
            try LedgerReader(path: directory).export(
                tokens: nil, format: .jsonl, states: source.state.map { [$0.name] } ?? [],
                reasons: source.reasons
            ) { (text) throws(BroadsideError) in
                guard let rows = reader.rows(in: text) else {
                    throw BroadsideError("\(directory): a row can't be read", exitCode: 5)
                }
                isWanted = put(.success(rows), isLast: false)
                guard isWanted else { throw SignalWatch.stopped }
            }
        } catch {
            if isWanted { put(.failure(CampaignError(error)), isLast: true) }
            return
        }
        put(.success(nil), isLast: true)
    }

    /// Hands over a piece once the previous one is taken; returns false if no more pieces are
    /// needed.
    @discardableResult
    private func put(_ next: Taken, isLast: Bool) -> Bool {
        let (waiter, isWanted) = monitor.locked {
            while piece != nil, !isClosed { monitor.wait() }
            guard !isClosed else { return (CheckedContinuation<Taken, Never>?.none, false) }
            assert(!isAtEnd, "nothing follows the last rows")
            isAtEnd = isLast
            if self.waiter == nil { piece = next }
            defer { self.waiter = nil }
            return (self.waiter, true)
        }
        waiter?.resume(returning: next)
        return isWanted
    }
}
