import BroadsideLists
import BroadsideRows
import BroadsideSupport

/// How many rows a run is about, counted or estimated before it begins.
enum ListSize: Equatable {
    case exact(UInt64)
    /// An estimate from the list's first bytes, so many of them; the rest may hold longer rows, or
    /// compress differently.
    case about(UInt64, fromBytes: UInt64)
    /// Of what comes through a pipe nothing is known.
    case unknown

    /// Looks at the list's beginning; exact if that is all of it.
    static func estimate(_ plan: Plan, _ list: TokenList) throws(BroadsideError) -> ListSize {
        try count(plan, list, byteLimit: list.isCutByBytes ? plainBytes : compressedBytes)
    }

    /// Counts the rows of a plain file, of one device, or of a compressed list up to `countedBytes`; what
    /// is longer is estimated from these.
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

    /// Counts rows up to the chunk that reaches a number of bytes.
    private static func count(
        _ plan: Plan, _ list: TokenList, byteLimit: UInt64
    ) throws(BroadsideError) -> ListSize {
        let shard = plan.options.shard
        let limit = plan.options.limit ?? .max
        // Of a shard the whole list is counted: its size is a share of that.
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

    /// A list of more bytes takes a while to be counted.
    private static var longToCount: UInt64 { 1 << 30 }
    /// Decompressed bytes of a list that are read to count its rows: some seconds.
    static var countedBytes: UInt64 { 2 << 30 }
    /// Bytes of a plain file from which an estimate is made.
    private static var plainBytes: UInt64 { 512 << 10 }
    /// The same of a compressed one: so many that what a decompressor reads ahead counts little.
    private static var compressedBytes: UInt64 { 4 << 20 }

    /// How many, so far as that is known.
    var count: UInt64? {
        switch self {
        case .exact(let count), .about(let count, _): count
        case .unknown: nil
        }
    }

    /// For people.
    var text: String {
        switch self {
        case .exact(let count): grouped(count)
        case .about(let count, let bytes):
            "about \(grouped(Self.rounded(count))), estimated from the first \(Self.size(bytes)) "
                + "of the list"
        case .unknown: "not known before the list is read"
        }
    }

    /// Who gets the campaign, for people.
    var devices: String {
        switch self {
        case .exact(let count): "\(grouped(count)) \(count == 1 ? "device" : "devices")"
        case .about(let count, _): "about \(grouped(Self.rounded(count))) devices"
        case .unknown: "production devices"
        }
    }

    /// What a person is asked to type.
    var request: String {
        switch self {
        case .exact: "the number, \(confirmation),"
        case .about: "\"\(confirmation)\" (the list is too long to be counted now)"
        case .unknown: confirmation
        }
    }

    /// What confirms it: the number, or that it is about so many.
    private var confirmation: String {
        switch self {
        case .exact(let count): "\(count)"
        case .about(let count, _): "about \(Self.rounded(count))"
        case .unknown: "yes"
        }
    }

    /// Whether what a person typed confirms it: digits may be grouped.
    func isConfirmed(by typed: String) -> Bool {
        func bare(_ text: String) -> String { text.filter { !" ,._'".contains($0) }.lowercased() }
        return bare(typed) == bare(confirmation)
    }

    /// Bytes in whole MB, or in KB if it is less than one.
    private static func size(_ bytes: UInt64) -> String {
        bytes < 1_000_000 ? "\(max(1, bytes / 1000)) KB" : "\(grouped(bytes / 1_000_000)) MB"
    }

    /// To two digits.
    private static func rounded(_ count: UInt64) -> UInt64 {
        var scale: UInt64 = 1
        while count / scale >= 100 { scale *= 10 }
        return (count + scale / 2) / scale * scale
    }
}
