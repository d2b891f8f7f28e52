/// Offsets of a time zone from UTC, read from a file of the IANA database (RFC 9636). They are a
/// table of changes, and a rule for the time after the last change.
public struct TimeZoneRules: Hashable, Sendable {
    /// The times of the changes, in seconds since 1970, ascending.
    private var changes: [Int64] = []
    /// Offset from each change on, in seconds east of UTC.
    private var offsets: [Int64] = []
    /// Offset before the first change.
    private var firstOffset: Int64 = 0
    /// Rule after the last change; nil: the last offset stays.
    private var rule: YearlyRule?

    /// UTC.
    public static let utc = TimeZoneRules()

    /// Maximum distance of a local clock from UTC, in seconds; the database has at most 16 hours.
    static let offsetLimit: Int64 = 26 * 3_600
    /// Maximum number of changes in a file; the largest file of the database has 400.
    static let changesLimit = 10_000

    /// Creates the rules of UTC, which has no changes.
    private init() {}

    /// Reads a zone's file.
    ///
    /// - Returns: nil if the bytes are not a zone's file, or if the file includes leap seconds.
    public init?(file bytes: [UInt8]) {
        var reader = ZoneFileReader(bytes)
        guard let first = reader.header() else { return nil }
        var header = first
        if first.version >= 2 {
            guard reader.skip(first.byteCount(wordBytes: 4)), let second = reader.header() else {
                return nil
            }
            header = second
        }
        let wordBytes = first.version >= 2 ? 8 : 4
        guard header.leapCount == 0, header.typeCount > 0, header.changeCount <= Self.changesLimit,
            let times = reader.words(header.changeCount, bytes: wordBytes),
            let kinds = reader.bytes(header.changeCount),
            let types = reader.bytes(header.typeCount * 6),
            reader.skip(
                header.letterCount + header.standardCount + header.universalCount)
        else { return nil }
        var typeOffsets: [Int64] = []
        for type in 0..<header.typeCount {
            let start = types.startIndex + type * 6
            let offset = ZoneFileReader.integer(types[start..<(start + 4)])
            guard abs(offset) < Self.offsetLimit else { return nil }
            typeOffsets.append(offset)
        }
        firstOffset = typeOffsets[0]
        for (time, kind) in zip(times, kinds) {
            guard Int(kind) < typeOffsets.count, changes.last ?? .min < time else { return nil }
            changes.append(time)
            offsets.append(typeOffsets[Int(kind)])
        }
        assert(changes.count == offsets.count, "each change has its offset")
        guard first.version >= 2 else { return }
        guard let footer = reader.footer() else { return nil }
        guard !footer.isEmpty else { return }
        guard let rule = YearlyRule(footer) else { return nil }
        self.rule = rule
    }

    /// Offset at a time, in seconds east of UTC.
    public func offset(at time: Int64) -> Int64 {
        if let last = changes.last, time < last { return tableOffset(at: time) }
        if let rule { return rule.offset(at: time) }
        return offsets.last ?? firstOffset
    }

    private func tableOffset(at time: Int64) -> Int64 {
        var (low, high) = (0, changes.count)
        while low < high {
            let middle = (low + high) / 2
            if changes[middle] <= time { low = middle + 1 } else { high = middle }
        }
        assert(low == 0 || changes[low - 1] <= time, "the change before is not later")
        return low == 0 ? firstOffset : offsets[low - 1]
    }

    /// Returns the local time at an instant, which is given in seconds since 1970. The result is in
    /// seconds since 1970, too, as if the local date and time were in UTC.
    public func local(at time: Int64) -> Int64 { time + offset(at: time) }

    /// First time, not before `start`, at which the local clock shows `local` or later. If `local`
    /// occurs twice, its first occurrence counts; if the clock skips it, the time of the skip
    /// counts.
    func firstTime(from start: Int64, showing local: Int64) -> Int64 {
        var begin = start
        while true {
            let offset = offset(at: begin)
            let time = max(begin, local - offset)
            guard let change = nextChange(after: begin), change <= time else {
                assert(self.local(at: time) >= local, "the clock shows that time, or a later one")
                return time
            }
            assert(change > begin, "changes only go forward")
            begin = change
        }
    }

    /// Time at which the local clock shows `local`. If there are two such times, this is the first;
    /// if the clock skips `local`, this is the time of the skip.
    func time(showing local: Int64) -> Int64 {
        firstTime(from: local - Self.offsetLimit, showing: local)
    }

    /// Time of the next change; nil if there is none.
    func nextChange(after time: Int64) -> Int64? {
        var (low, high) = (0, changes.count)
        while low < high {
            let middle = (low + high) / 2
            if changes[middle] <= time { low = middle + 1 } else { high = middle }
        }
        if low < changes.count { return changes[low] }
        return rule?.nextChange(after: time)
    }
}

/// Reader of the bytes of a zone's file.
private struct ZoneFileReader {
    struct Header {
        var version: Int
        var universalCount: Int
        var standardCount: Int
        var leapCount: Int
        var changeCount: Int
        var typeCount: Int
        var letterCount: Int

        /// Number of data bytes after the header, if times have `wordBytes` bytes.
        func byteCount(wordBytes: Int) -> Int {
            changeCount * (wordBytes + 1) + typeCount * 6 + letterCount
                + leapCount * (wordBytes + 4) + standardCount + universalCount
        }
    }

    private let file: [UInt8]
    private var offset = 0

    init(_ file: [UInt8]) { self.file = file }

    /// Reads a header; nil if there is none.
    mutating func header() -> Header? {
        guard let bytes = bytes(44), bytes.prefix(4).elementsEqual("TZif".utf8) else { return nil }
        let start = bytes.startIndex
        func count(_ index: Int) -> Int {
            let at = start + 20 + index * 4
            return Int(UInt32(truncatingIfNeeded: Self.integer(bytes[at..<(at + 4)])))
        }
        let version = bytes[start + 4]
        return Header(
            version: version == 0 ? 1 : Int(version) - 0x30, universalCount: count(0),
            standardCount: count(1), leapCount: count(2), changeCount: count(3),
            typeCount: count(4), letterCount: count(5))
    }

    /// Big-endian integer with a sign.
    static func integer(_ bytes: ArraySlice<UInt8>) -> Int64 {
        var value: UInt64 = 0
        for byte in bytes { value = value << 8 | UInt64(byte) }
        return bytes.count == 8
            ? Int64(bitPattern: value) : Int64(Int32(truncatingIfNeeded: value))
    }

    /// Reads bytes; nil if fewer are left.
    mutating func bytes(_ count: Int) -> ArraySlice<UInt8>? {
        guard count >= 0, count <= file.count - offset else { return nil }
        defer { offset += count }
        return file[offset..<(offset + count)]
    }

    mutating func skip(_ count: Int) -> Bool { bytes(count) != nil }

    /// Reads integers of 4 or 8 bytes; nil if fewer are left.
    mutating func words(_ count: Int, bytes size: Int) -> [Int64]? {
        guard let all = bytes(count * size) else { return nil }
        return (0..<count).map { index in
            let start = all.startIndex + index * size
            return Self.integer(all[start..<(start + size)])
        }
    }

    /// Reads the rule between two line feeds; nil if there is none.
    mutating func footer() -> ArraySlice<UInt8>? {
        guard let rest = bytes(file.count - offset), rest.first == 0x0A,
            let end = rest.dropFirst().firstIndex(of: 0x0A)
        else { return nil }
        return rest[(rest.startIndex + 1)..<end]
    }
}
