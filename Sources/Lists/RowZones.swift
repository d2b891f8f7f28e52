internal import BroadsideHygiene
internal import BroadsidePrimitives
package import BroadsideLedgerFormat
package import BroadsideRows
package import BroadsideSupport
internal import Glibc

/// Time zone of each row of a list, found in one pass before the first request. The zone is a
/// number of two bytes per row, in a file without a name. This file is read along with the list.
/// Memory does not grow with the list.
///
/// Used by one thread at a time.
package final class RowZones: @unchecked Sendable {
    /// A time zone that rows name.
    package struct Zone: Sendable {
        package let name: String
        /// Number of rows that name this zone and can be sent.
        package fileprivate(set) var rows: UInt64 = 0
        /// Number of rows that name this zone and are not sent, because their devices were erased.
        package fileprivate(set) var erasedRows: UInt64 = 0
    }

    /// Rule by which rows name their time zones.
    package struct Rule: Sendable {
        /// Column of the zones; nil if every row has the default zone.
        package var column: String?
        /// Zone of rows that name no known zone; nil if these rows are invalid.
        package var defaultZone: String?
        /// Returns whether the system knows a zone.
        package var isKnown: @Sendable (String) -> Bool

        package init(
            column: String?, defaultZone: String?, isKnown: @escaping @Sendable (String) -> Bool
        ) {
            self.column = column
            self.defaultZone = defaultZone
            self.isKnown = isKnown
        }
    }

    /// Zone number of rows that need no zone, because they are settled without a request.
    static let settled: UInt16 = 0
    /// Zone number of rows whose zone is unknown.
    static let unknown: UInt16 = 1
    /// Lowest number of a known zone.
    package static let firstZone: UInt16 = 2
    /// Maximum number of zones; the IANA database has 600 names.
    package static let zonesLimit = 4_096
    /// Bit that a row of an erased device has in the file, in addition to its zone number.
    private static let erasedBit: UInt16 = 1 << 15
    /// Number of rows whose zones are written to the file at a time.
    private static let windowCount = 1 << 16

    /// The known zones; the index is the zone's number minus `firstZone`.
    package private(set) var zones: [Zone] = []
    /// Number of rows that can't be sent because they have no known zone. `firstUnknown` has the
    /// line and text of the first such row.
    package private(set) var unknownRows: UInt64 = 0
    package private(set) var firstUnknown: (line: UInt64, text: String)?
    /// Number of rows that get the default zone because they name an unknown zone. `firstMisnamed`
    /// has the line and text of the first such row.
    package private(set) var misnamedRows: UInt64 = 0
    package private(set) var firstMisnamed: (line: UInt64, text: String)?
    /// Number of rows that get the default zone because their column is empty.
    package private(set) var unnamedRows: UInt64 = 0
    /// Headers among the rows.
    package private(set) var headers = RepeatedHeaders()
    /// Rows that are overwritten with zero bytes.
    package private(set) var overwritten = OverwrittenRows()
    /// Number of the first row in the file. The file has `count` rows.
    private var firstRow: UInt64 = 0
    private var count: UInt64 = 0
    private let descriptor: Int32
    private let name: String

    deinit { close(descriptor) }

    /// Names of the zones that have rows.
    package var usedNames: [String] { zones.filter { $0.rows > 0 }.map(\.name) }

    /// Number of the row after the list's last one.
    package var endRow: UInt64 { firstRow + count }

    /// Reads the list to find the time zone of each row.
    ///
    /// - Parameters:
    ///   - selection: Rows of the run, and which of these rows the run skips.
    ///   - left: Work that earlier runs left; nil for all rows. Rows outside this work count as
    ///     settled.
    package init(
        _ list: TokenList, _ selection: ListSelection, left: consuming ResumePlan? = nil,
        rule: Rule
    ) throws(BroadsideError) {
        let directory = temporaryDirectory()
        name = "a temporary file in \(directory)"
        descriptor = try openNameless(in: directory)
        firstRow = selection.rows.part.firstRow
        var numbers = ZoneNumbers(rule, layout: list.layout)
        var survey = ListSurvey()
        var window: [UInt16] = []
        window.reserveCapacity(Self.windowCount)
        var rows = try RowCursor(
            list, selection, left: left, endsOnSignals: true, showsProgress: true)
        while let row = try rows.next() {
            while row.number > firstRow + count + UInt64(window.count) {
                // The row belongs to another shard, or is settled.
                try append(Self.settled, &window)
            }
            assert(
                row.number == firstRow + count + UInt64(window.count), "each row has its number")
            var number = Self.settled
            let hasText = survey.take(row, of: rows.reader) > 0
            if hasText, case .erased = rows.disposition {
                number = numbers.number(of: rows.reader, isErased: true) | Self.erasedBit
            } else if hasText, rows.disposition.isSent {
                number = numbers.number(of: rows.reader)
                if number == Self.unknown {
                    unknownRows += 1
                    if firstUnknown == nil {
                        firstUnknown = (row.line, numbers.text(in: rows.reader))
                    }
                } else {
                    switch numbers.latest {
                    case .known: break
                    case .unnamed: unnamedRows += 1
                    case .misnamed:
                        misnamedRows += 1
                        if firstMisnamed == nil {
                            firstMisnamed = (row.line, numbers.text(in: rows.reader))
                        }
                    }
                }
            }
            try append(number, &window)
        }
        headers = survey.counts.headers
        overwritten = survey.counts.overwritten
        try flush(&window)
        zones = try numbers.finish(list)
        assert(
            misnamedRows + unnamedRows <= zones.reduce(0) { $0 + $1.rows },
            "the default zone includes all rows without a known zone")
    }

    /// Creates zones from known numbers, for tests.
    ///
    /// - Parameters:
    ///   - numbers: Number of each row's zone, from `firstZone`; 0 if the row needs no zone.
    ///   - zoneCount: Number of zones.
    package init(numbers: [UInt16], zoneCount: Int) throws(BroadsideError) {
        let directory = temporaryDirectory()
        name = "a temporary file in \(directory)"
        descriptor = try openNameless(in: directory)
        var window = numbers
        try flush(&window)
        for number in 0..<zoneCount {
            var zone = Zone(name: "\(number)")
            zone.rows = UInt64(numbers.count { $0 == Self.firstZone + UInt16(number) })
            zones.append(zone)
        }
    }

    private func append(_ number: UInt16, _ window: inout [UInt16]) throws(BroadsideError) {
        window.append(number)
        if window.count == Self.windowCount { try flush(&window) }
    }

    private func flush(_ window: inout [UInt16]) throws(BroadsideError) {
        try writeAll(window.rawSpan, to: descriptor, name: name)
        count += UInt64(window.count)
        window.removeAll(keepingCapacity: true)
    }

    /// Returns the zone numbers of a range of rows, `settled` for rows of erased devices. Rows after
    /// the last row that was read are omitted.
    package func numbers(of rows: Range<UInt64>) throws(BroadsideError) -> [UInt16] {
        var numbers = try read(rows)
        for index in numbers.indices where numbers[index] & Self.erasedBit != 0 {
            numbers[index] = Self.settled
        }
        return numbers
    }

    /// Like `numbers`, with the zones of rows of erased devices.
    func numbersWithErased(of rows: Range<UInt64>) throws(BroadsideError) -> [UInt16] {
        var numbers = try read(rows)
        for index in numbers.indices { numbers[index] &= ~Self.erasedBit }
        return numbers
    }

    private func read(_ rows: Range<UInt64>) throws(BroadsideError) -> [UInt16] {
        let end = min(rows.upperBound, endRow)
        guard rows.lowerBound >= firstRow, rows.lowerBound < end else { return [] }
        var numbers = [UInt16](repeating: 0, count: Int(end - rows.lowerBound))
        let read = SystemCall.read(
            descriptor, at: (rows.lowerBound - firstRow) * 2, &numbers)
        guard read == numbers.count * 2 else {
            throw BroadsideError("\(name) can't be read: try again", exitCode: 5)
        }
        return numbers
    }
}

/// Finds the number of a row's time zone from the text in the zone column.
package struct ZoneNumbers: ~Copyable {
    private let rule: RowZones.Rule
    /// Index of the field with the zone; nil if every row has the default zone.
    private let field: Int?
    private let defaultNumber: UInt16
    private var zones: [RowZones.Zone] = []
    /// Zone numbers by the hash of the zone's text. Texts that are not stored are looked up each
    /// time.
    private var known: [UInt64: UInt16] = [:]
    private var hasRow = false
    private var hasValue = false
    /// Kind of text in the zone column of the latest row.
    private(set) var latest = Naming.known

    /// Kind of text in a row's zone column.
    enum Naming {
        /// The zone is known, or there is no column of zones.
        case known
        /// The column has no text.
        case unnamed
        /// The column has a text that is not a known zone.
        case misnamed
    }

    /// Maximum number of texts that are stored in `known`.
    private static let knownLimit = 65_536
    /// Longest name of a zone, in bytes.
    private static let nameLimit = 64

    package init(_ rule: RowZones.Rule, layout: RowLayout) {
        self.rule = rule
        field = rule.column.map { column in
            guard let field = layout.field(named: column) else {
                preconditionFailure("the layout was made for other columns")
            }
            return field
        }
        if let name = rule.defaultZone {
            zones.append(RowZones.Zone(name: name))
            defaultNumber = RowZones.firstZone
        } else {
            defaultNumber = RowZones.unknown
        }
    }

    /// Whether the zone of the latest row is unknown, and there is no default.
    package mutating func isUnknown(in reader: borrowing RowReader) -> Bool {
        number(of: reader) == RowZones.unknown
    }

    /// Returns the number of the latest row's zone, and counts the row.
    ///
    /// - Parameter isErased: Whether the row's device was erased.
    mutating func number(of reader: borrowing RowReader, isErased: Bool = false) -> UInt16 {
        hasRow = true
        let number = find(reader)
        guard number >= RowZones.firstZone else { return number }
        let zone = Int(number - RowZones.firstZone)
        if isErased { zones[zone].erasedRows += 1 } else { zones[zone].rows += 1 }
        return number
    }

    private mutating func find(_ reader: borrowing RowReader) -> UInt16 {
        latest = .known
        guard let field else { return defaultNumber }
        let value = reader.field(field)
        if value.form != .missing { hasValue = true }
        let text = reader.text(value).withoutBlanks
        guard value.form != .missing, !value.isText || !text.isEmpty else {
            latest = .unnamed
            return defaultNumber
        }
        guard value.isText, value.count <= Self.nameLimit else {
            latest = .misnamed
            return defaultNumber
        }
        let hash = MixingHash.hash(text)
        let number = known[hash] ?? makeNumber([UInt8](text))
        if known.count < Self.knownLimit { known[hash] = number }
        guard number == RowZones.unknown else { return number }
        latest = .misnamed
        return defaultNumber
    }

    /// Returns the number of a zone; `unknown` if the system does not know the zone.
    private mutating func makeNumber(_ bytes: [UInt8]) -> UInt16 {
        guard let name = String(validating: bytes, as: UTF8.self), rule.isKnown(name) else {
            return RowZones.unknown
        }
        if let index = zones.firstIndex(where: { $0.name == name }) {
            return RowZones.firstZone + UInt16(index)
        }
        guard zones.count < RowZones.zonesLimit else { return RowZones.unknown }
        zones.append(RowZones.Zone(name: name))
        assert(zones.count <= RowZones.zonesLimit, "so many zones have numbers")
        return RowZones.firstZone + UInt16(zones.count - 1)
    }

    /// Returns the name of a zone by its number.
    func name(of number: UInt16) -> String { zones[Int(number - RowZones.firstZone)].name }

    /// Text in the zone column of the latest row.
    func text(in reader: borrowing RowReader) -> String {
        field.map { HiddenCharacters.shown(tokenExcerpt(reader.value(reader.field($0)))) } ?? ""
    }

    /// Returns all zones. Call after the last row.
    ///
    /// - Throws: An error if the list is JSON Lines and no row has a value in the zone column. In
    ///   this case, the column's name is probably misspelled.
    consuming func finish(_ list: TokenList) throws(BroadsideError) -> [RowZones.Zone] {
        if let column = rule.column, list.format.namesColumnsInEachRow, hasRow, !hasValue {
            throw .usage(
                "zone-column",
                "no row of \(list.name) has a value of '\(printable(column))'"
                    + (try list.keyAdvice(for: column).map { ": \($0)" }
                        ?? ": name another column"))
        }
        return zones
    }
}
