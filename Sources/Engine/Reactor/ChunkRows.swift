import BroadsideSupport

/// Number of rows that a reactor reserves at once. It is about the number of rows that the reactor
/// processes in 1/32 s, so that a kill leaves few rows in doubt. If a chunk cannot hold this many
/// rows, several chunks are reserved together. In a slow run, all reactors together reserve at most
/// `slowRows` rows, so that every reactor gets a share.
struct ChunkRows {
    /// Maximum number of rows per chunk.
    private(set) var limit: Int
    /// Limit on rows that are read ahead before their reservation is synced, counting only rows to
    /// send.
    private(set) var aheadLimit: Int
    /// The lower bound of `limit` and `aheadLimit`.
    let minimum: Int
    /// Number of rows processed since the last adaptation, and how many of them were sent.
    var taken = 0
    var sent = 0
    private var perSecond = 0
    private var sentPerSecond = 0
    private var since: UInt64 = 0

    /// Minimum number of rows per chunk. Smaller chunks would save nothing, because a sync costs
    /// the same.
    static let fewest = 16
    static let maximum = 65_536
    /// Limit on rows that all reactors of a slow run have reserved and not sent.
    static let slowRows = 1_000
    /// Number of reservations per second of work.
    private static let groupsPerSecond = 32

    /// - Parameters:
    ///   - reactors: Number of reactors in the run.
    ///   - perSecond: Rows per second over all of them; nil: unlimited.
    init(reactors: Int, perSecond: Int?) {
        // One chunk waits for its sync while another is in use and others are requested.
        let share = max(1, Self.slowRows / (reactors * (2 + ChunkQueue.aheadMin)))
        minimum = min(Self.fewest, share)
        let known = perSecond.map { $0 / reactors / Self.groupsPerSecond } ?? .max
        limit = max(minimum, min(share, known))
        aheadLimit = limit
    }

    mutating func adapt(now: UInt64) {
        // Rows taken within a quarter of a second are a lower bound of the rate.
        limit = min(max(limit, 4 * taken / Self.groupsPerSecond), Self.maximum)
        aheadLimit = max(aheadLimit, 4 * sent / Self.groupsPerSecond)
        guard now - min(now, since) >= second / 4 else { return }
        let isFirst = since == 0
        since = now
        guard !isFirst else { return }
        // If all responses take equally long, rows come in bursts. A lull between bursts must not
        // lower the rate.
        perSecond = max(4 * taken, perSecond - perSecond / 16)
        sentPerSecond = max(4 * sent, sentPerSecond - sentPerSecond / 16)
        limit = min(max(perSecond / Self.groupsPerSecond, minimum), Self.maximum)
        aheadLimit = max(sentPerSecond / Self.groupsPerSecond, minimum)
        taken = 0
        sent = 0
        assert((minimum...Self.maximum).contains(limit), "a chunk has so many rows")
    }

    /// Number of chunks to request together, so that they share a sync. Rows without a request do
    /// not count, because they need no sync.
    ///
    /// - Parameter requests: Number of rows per chunk that are sent; 0: unknown.
    func chunksPerSync(requests: Int, now: UInt64) -> Int {
        guard requests > 0 else { return ChunkQueue.aheadMin }
        let elapsed = now - min(now, since)
        let lately = elapsed > second / 64 ? sent * Int(second) / Int(elapsed) : 0
        let chunks = max(sentPerSecond, lately) / (Self.groupsPerSecond * requests)
        return min(max(chunks, ChunkQueue.aheadMin), ChunkQueue.aheadMax)
    }
}
