import BroadsideSupport

/// How much of the list a reactor reserves at once: chunks of about as many rows as it gets through
/// in a thirtieth of a second, and where that is more than a chunk holds so many of them together,
/// so that a kill leaves little in doubt and a slow run still shares its rows out: what a tenth of a
/// second needs, and in a slow run `slowRows` over all reactors at most.
struct ChunkRows {
    /// The most rows of a chunk.
    private(set) var limit: Int
    /// How many rows to be sent may be read ahead of their sync.
    private(set) var aheadLimit: Int
    /// What neither falls below.
    let minimum: Int
    /// Rows gone through since the last look, and how many of them were to be sent.
    var taken = 0
    var sent = 0
    private var perSecond = 0
    private var sentPerSecond = 0
    private var since: UInt64 = 0

    /// A smaller chunk would save nothing: a sync costs as much.
    static let fewest = 16
    static let maximum = 65_536
    /// The most rows that all reactors of a slow run together have reserved and not sent.
    static let slowRows = 1_000
    /// Groups that a second's work makes.
    private static let groupsPerSecond = 32

    /// - Parameters:
    ///   - reactors: Those of the run.
    ///   - perSecond: Rows that all of them may send in a second; nil: any number.
    init(reactors: Int, perSecond: Int?) {
        // Rows are held for one chunk's sync while another is in use and others are on their way.
        let share = max(1, Self.slowRows / (reactors * (2 + ChunkQueue.aheadMin)))
        minimum = min(Self.fewest, share)
        let known = perSecond.map { $0 / reactors / Self.groupsPerSecond } ?? .max
        limit = max(minimum, min(share, known))
        aheadLimit = limit
    }

    mutating func adapt(now: UInt64) {
        // What was taken within a quarter of a second is no more than that.
        limit = min(max(limit, 4 * taken / Self.groupsPerSecond), Self.maximum)
        aheadLimit = max(aheadLimit, 4 * sent / Self.groupsPerSecond)
        guard now - min(now, since) >= second / 4 else { return }
        let isFirst = since == 0
        since = now
        guard !isFirst else { return }
        // Rows go in waves where all answers take equally long: a lull is not taken for the rate.
        perSecond = max(4 * taken, perSecond - perSecond / 16)
        sentPerSecond = max(4 * sent, sentPerSecond - sentPerSecond / 16)
        limit = min(max(perSecond / Self.groupsPerSecond, minimum), Self.maximum)
        aheadLimit = max(sentPerSecond / Self.groupsPerSecond, minimum)
        taken = 0
        sent = 0
        assert((minimum...Self.maximum).contains(limit), "a chunk has so many rows")
    }

    /// How many chunks to ask for together. Only rows that are sent share a sync.
    ///
    /// - Parameter requests: How many rows of a chunk are sent; 0: not known yet.
    func chunksPerSync(requests: Int, now: UInt64) -> Int {
        guard requests > 0 else { return ChunkQueue.aheadMin }
        let elapsed = now - min(now, since)
        let lately = elapsed > second / 64 ? sent * Int(second) / Int(elapsed) : 0
        let chunks = max(sentPerSecond, lately) / (Self.groupsPerSecond * requests)
        return min(max(chunks, ChunkQueue.aheadMin), ChunkQueue.aheadMax)
    }
}
