import BroadsideLists
import BroadsideRows
import BroadsideSupport

/// Number of a run's rows, counted or estimated before the run begins.
enum ListSize: Equatable {
    case exact(UInt64)
    /// An estimate from this many bytes at the start of the list. Later rows may be longer or
    /// compress differently.
    case about(UInt64, fromBytes: UInt64)
    /// Unknown, because the list comes through a pipe.
    case unknown

    /// Estimates the number of rows from the beginning of the list. The number is exact if this
    /// beginning is already the whole list.
    static func estimate(_ plan: Plan, _ list: TokenList) throws(BroadsideError) -> ListSize {
        try count(plan, list, byteLimit: list.isCutByBytes ? plainBytes : compressedBytes)
    }

    /// Counts the rows of a plain file or of a single device. Of a compressed list, at most
    /// `countedBytes` are read: the number of rows of a larger list is estimated.
    static func count(
        _ plan: Plan, _ list: TokenList, _ rows: RunRows
    ) throws(BroadsideError) -> ListSize {
        if list.bytes.estimatedByteCount > longToCount {
            standardErrorLine("broadside: counting the rows of \(list.name)")
        }
        guard list.isCutByBytes else { return try count(plan, list, byteLimit: countedBytes) }
        let rows = try rows.rows()
        let end = try ListSource(list, ListSelection(rows: rows)).countRows { false } ?? 0
        return .exact(rows.count(upTo: end))
    }

    /// Counts rows until a number of bytes is reached.
    private static func count(
        _ plan: Plan, _ list: TokenList, byteLimit: UInt64
    ) throws(BroadsideError) -> ListSize {
        let shard = plan.options.shard
        let limit = plan.options.limit ?? .max
        // For a shard, counts the rows of the whole list and takes the shard's share of them.
        let source = try ListSource(
            list,
            ListSelection(rows: CampaignRows(limit: shard == nil ? plan.options.limit : nil)))
        var bytes: UInt64 = 0
        var rows: UInt64 = 0
        while bytes < byteLimit {
            guard let chunk = try source.next(rowLimit: .max) else {
                if shard != nil, list.isCutByBytes { break }
                return .exact(plan.rows(of: list, part: .wholeList).count(upTo: rows))
            }
            bytes += chunk.byteCount
            rows += UInt64(chunk.rowCount)
            source.giveBack(chunk)
        }
        let (done, total) = list.bytes.progress(at: bytes)
        guard rows > 0, done > 0, total > 0 else { return .unknown }
        let all = Double(total) * Double(rows) / Double(done) / Double(shard?.count ?? 1)
        return .about(min(UInt64(all), limit), fromBytes: bytes)
    }

    /// A count is announced if the list has at least this many bytes, because counting then takes
    /// long.
    private static var longToCount: UInt64 { 1 << 30 }
    /// Limit on the decompressed bytes that are read to count rows. Reading them takes some
    /// seconds.
    static var countedBytes: UInt64 { 2 << 30 }
    /// Number of bytes of a plain file that are read for an estimate.
    private static var plainBytes: UInt64 { 512 << 10 }
    /// Number of bytes of a compressed file that are read for an estimate. It is large enough that
    /// the decompressor's read-ahead does not matter.
    private static var compressedBytes: UInt64 { 4 << 20 }

    /// Exact or estimated number; nil if unknown.
    var count: UInt64? {
        switch self {
        case .exact(let count), .about(let count, _): count
        case .unknown: nil
        }
    }

    /// Whether the number is exact.
    var isExact: Bool {
        if case .exact = self { true } else { false }
    }

    /// Human-readable description.
    var text: String {
        switch self {
        case .exact(let count): grouped(count)
        case .about(let count, let bytes):
            "about \(grouped(Self.rounded(count))), estimated from the first \(Self.size(bytes)) "
                + "of the list"
        case .unknown: "not known before the list is read"
        }
    }

    /// Human-readable number of devices that the campaign goes to.
    var devices: String {
        switch self {
        case .exact(let count): "\(grouped(count)) \(count == 1 ? "device" : "devices")"
        case .about(let count, _): "about \(grouped(Self.rounded(count))) devices"
        case .unknown: "production devices"
        }
    }

    /// The text that a person is asked to type.
    var request: String {
        switch self {
        case .exact: "the number, \(confirmation),"
        case .about: "\"\(confirmation)\" (the list is too long to be counted now)"
        case .unknown: confirmation
        }
    }

    /// The text that confirms the run: the exact number, or the estimate with "about".
    private var confirmation: String {
        switch self {
        case .exact(let count): "\(count)"
        case .about(let count, _): "about \(Self.rounded(count))"
        case .unknown: "yes"
        }
    }

    /// Whether the typed text confirms the run; digits may be grouped.
    func isConfirmed(by typed: String) -> Bool {
        func bare(_ text: String) -> String { text.filter { !" ,._'".contains($0) }.lowercased() }
        return bare(typed) == bare(confirmation)
    }

    /// Formats bytes in whole MB, or in KB below 1 MB.
    private static func size(_ bytes: UInt64) -> String {
        bytes < 1_000_000 ? "\(max(1, bytes / 1000)) KB" : "\(grouped(bytes / 1_000_000)) MB"
    }

    /// Rounds to two significant digits.
    private static func rounded(_ count: UInt64) -> UInt64 {
        var scale: UInt64 = 1
        while count / scale >= 100 { scale *= 10 }
        let rounded = (count + scale / 2) / scale * scale
        assert(
            max(rounded, count) - min(rounded, count) <= scale / 2,
            "the rounded number is the nearest multiple of its scale")
        return rounded
    }
}
