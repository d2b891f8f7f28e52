/// A time zone of a seed: its file, as the system has one for each zone, and the time that its
/// clock shows.
struct ScriptedZone {
    /// Seconds east of UTC before the first change.
    let offset: Int64
    /// Clock changes in order: seconds since 1970, always a whole minute, and the offset from then
    /// on.
    let changes: [(time: Int64, offset: Int64)]

    /// Time that the clock shows, in seconds as if it showed UTC.
    func shown(_ time: Int64) -> Int64 {
        var offset = offset
        for change in changes where change.time <= time { offset = change.offset }
        return time + offset
    }

    /// The zone's file by RFC 9636: version 2, with a table of changes and no rule for later times.
    var file: [UInt8] {
        func bytes(_ value: Int64, _ count: Int) -> [UInt8] {
            (0..<count).reversed().map { UInt8(truncatingIfNeeded: value >> (8 * Int64($0))) }
        }
        func header(changes: Int, types: Int) -> [UInt8] {
            Array("TZif2".utf8) + [UInt8](repeating: 0, count: 15)
                + [0, 0, 0, changes, types, 1].flatMap { bytes(Int64($0), 4) }
        }
        func type(_ offset: Int64) -> [UInt8] { bytes(offset, 4) + [0, 0] }
        let first = header(changes: 0, types: 1) + type(0) + [0]
        var second = header(changes: changes.count, types: changes.count + 1)
        second += changes.flatMap { bytes($0.time, 8) }
        second += changes.indices.map { UInt8($0 + 1) }
        second += type(offset) + changes.flatMap { type($0.offset) } + [0]
        return first + second + Array("\n\n".utf8)
    }
}
