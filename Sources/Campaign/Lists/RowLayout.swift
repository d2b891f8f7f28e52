/// Which columns of a list are wanted, and where each row has them.
public struct RowLayout: Sendable, Equatable {
    /// How the list is written.
    public let format: ListFormat
    /// The wanted columns' names; a row's field `i` is the column `names[i]`.
    public let names: [String]
    /// For delimited formats, the place of each wanted column in a row; else empty.
    let places: [Int]

    /// The layout of a list without columns: field 0 is the whole line.
    public static var lines: RowLayout { RowLayout(format: .lines, names: ["token"], places: []) }

    /// Finds the columns `names` in a list.
    ///
    /// - Parameters:
    ///   - names: distinct; for `lines` only the first is used, as the name of the whole line.
    ///   - header: the header's text as the cutter gives it, for delimited formats.
    /// - Throws: `MissingColumn` with the first name that the header lacks.
    public init(
        format: ListFormat, names: [String], header: [UInt8]? = nil
    ) throws(MissingColumn) {
        var places: [Int] = []
        if let separator = format.separator {
            let columns = RowLayout.columns(header ?? [], separator: separator)
            for name in names {
                guard let place = columns.firstIndex(of: name) else {
                    throw MissingColumn(name: name, columns: columns)
                }
                places.append(place)
            }
        }
        precondition(!names.isEmpty && Set(names).count == names.count, "names are distinct")
        self.init(
            format: format, names: format == .lines ? [names[0]] : names, places: places)
    }

    private init(format: ListFormat, names: [String], places: [Int]) {
        self.format = format
        self.names = names
        self.places = places
    }

    /// A column that is wanted and that the header does not name.
    public struct MissingColumn: Error, Equatable {
        /// The name that was looked for.
        public var name: String
        /// The names the header has.
        public var columns: [String]

        /// Makes the error.
        public init(name: String, columns: [String]) {
            self.name = name
            self.columns = columns
        }
    }

    /// The names in a header; blanks round them and quotes do not belong to a name.
    public static func columns(_ header: [UInt8], separator: UInt8) -> [String] {
        var columns: [String] = []
        var name: [UInt8] = []
        var isQuoted = false
        var offset = 0
        func end() {
            let isBlank = { (octet: UInt8) in octet == 0x20 || octet == 0x09 || octet == 0x0d }
            let text = name.drop(while: isBlank).reversed().drop(while: isBlank).reversed()
            columns.append(String(decoding: Array(text), as: UTF8.self))
            name = []
        }
        while offset < header.count {
            let octet = header[offset]
            if octet == UInt8(ascii: "\"") {
                if isQuoted, offset + 1 < header.count, header[offset + 1] == octet {
                    name.append(octet)
                    offset += 1
                } else if isQuoted || name.allSatisfy({ $0 == 0x20 }) {
                    isQuoted.toggle()
                } else {
                    name.append(octet)
                }
            } else if octet == separator, !isQuoted {
                end()
            } else {
                name.append(octet)
            }
            offset += 1
        }
        end()
        return columns
    }
}
