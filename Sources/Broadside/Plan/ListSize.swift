import Campaign
import Lists
import Support

/// How many rows a run is about, counted or estimated before it begins.
enum ListSize: Equatable {
    case exact(UInt64)
    /// From how many rows the list's first bytes hold.
    case about(UInt64)
    /// Of what comes through a pipe nothing is known.
    case unknown

    /// Looks at the list's beginning; exact if that is all of it.
    static func estimate(_ plan: Plan, _ list: TokenList) throws(BroadsideError) -> ListSize {
        let shard = plan.options.shard
        let pool = ChunkPool(limit: 3)
        let source = try ListSource(
            list: list, pool: pool, plan: nil, rowsLimit: shard == nil ? plan.options.limit : nil)
        var bytes: UInt64 = 0
        var rows: UInt64 = 0
        for _ in 0..<(list.isCutByBytes ? plainChunks : compressedChunks) {
            guard let chunk = try source.next(rowLimit: .max) else {
                guard shard != nil else { return .exact(rows) }
                break
            }
            bytes += chunk.byteCount
            rows += UInt64(chunk.rowCount)
            pool.giveBack(chunk)
        }
        let (done, total) = list.bytes.progress(at: bytes)
        guard rows > 0, done > 0, total > 0 else { return .unknown }
        let all = Double(total) * Double(rows) / Double(done) / Double(shard?.count ?? 1)
        return .about(min(UInt64(all), plan.options.limit ?? .max))
    }

    /// Counts the rows of a plain file, or of one device; estimates those of other lists.
    static func count(_ plan: Plan, _ list: TokenList) throws(BroadsideError) -> ListSize {
        guard list.isCutByBytes else { return try estimate(plan, list) }
        if let byteCount = list.byteCount, byteCount > longToCount {
            standardErrorLine("broadside: counting the rows of \(list.name)")
        }
        let part = try list.part(of: plan.options.shard)
        let source = try ListSource(
            plan, list: list, part: part, pool: ChunkPool(limit: 3), skips: nil)
        let end = try source.countRows { false } ?? 0
        return .exact(min(end - min(end, part.firstRow), plan.options.limit ?? .max))
    }

    /// A list of more bytes takes a while to be counted.
    private static var longToCount: UInt64 { 1 << 30 }
    /// Chunks of a plain file from which an estimate is made.
    private static var plainChunks: Int { 8 }
    /// The same of a compressed one: 4 MiB, so that what a decompressor reads ahead counts little.
    private static var compressedChunks: Int { 64 }

    /// For people.
    var text: String {
        switch self {
        case .exact(let count): grouped(count)
        case .about(let count): "about \(grouped(Self.rounded(count)))"
        case .unknown: "not known before the list is read"
        }
    }

    /// The number, an estimate to two digits; nil if there is none.
    var shownCount: UInt64? {
        switch self {
        case .exact(let count): count
        case .about(let count): Self.rounded(count)
        case .unknown: nil
        }
    }

    /// To two digits.
    private static func rounded(_ count: UInt64) -> UInt64 {
        var scale: UInt64 = 1
        while count / scale >= 100 { scale *= 10 }
        return (count + scale / 2) / scale * scale
    }
}
