internal import BroadsidePrimitives
package import BroadsideSupport

/// A campaign's settings from a JSON5 file: options by long name, each with its location.
package struct CampaignFile {
    /// One setting.
    package struct Entry {
        /// The option's name, without dashes.
        package var name: String
        /// Locations of the name and the value (file, line and column), for errors.
        package var nameLocation: String
        package var location: String
        package var value: Value
    }

    /// Value of a setting.
    package enum Value {
        case boolean(Bool)
        case number(String)
        case string(String)
        /// The values of an option that may be repeated; empty for an empty array.
        case strings([String])
        /// Description of a value that no option accepts, such as an object.
        case other(String)
    }

    /// Settings in the order of the file.
    package let entries: [Entry]
    /// Prefix of relative paths in the file: its folder and a slash, or empty.
    package let folder: String

    /// Size limit of a campaign file, bytes.
    static let sizeLimit = 1 << 20

    /// Whether a file begins like YAML: with `---`, or with a key outside braces.
    static func isYAML(_ bytes: [UInt8]) -> Bool {
        var lines = bytes.split(separator: UInt8(ascii: "\n")).lazy.map { line in
            line.drop { $0 <= 0x20 }
        }.filter { !$0.isEmpty && $0.first != UInt8(ascii: "#") }.makeIterator()
        guard let first = lines.next() else { return false }
        if first.starts(with: "---".utf8) { return true }
        let key = first.prefix { byte in
            byte == UInt8(ascii: "-") || byte == UInt8(ascii: "_")
                || UnicodeScalar(byte).properties.isAlphabetic && byte < 0x80
        }
        return !key.isEmpty && first[key.endIndex...].first == UInt8(ascii: ":")
    }

    /// Reads and parses a file.
    package init(path: String) throws(BroadsideError) {
        let bytes = try readFile(path, option: "campaign", limit: Self.sizeLimit)
        folder = path.parts(atLast: "/").map { "\($0.before)/" } ?? ""
        func named(_ location: JSON5Position) -> String {
            "--campaign \(path), line \(location.line), column \(location.column)"
        }
        if let problem = UTF16Text.problem(bytes.rawSpan) {
            throw .request("--campaign \(path) \(problem)")
        }
        if Self.isYAML(bytes) {
            throw .request(
                "--campaign \(path), line 1: this is YAML, but a campaign is JSON5: write { \"tokens\": "
                    + "\"devices.csv\", ... }")
        }
        let root: JSON5Value
        do {
            root = try JSON5Reader.read(bytes)
        } catch {
            throw .request("\(named(error.position)): \(error.message)")
        }
        guard case .object(let members) = root.content else {
            throw .request(
                "\(named(root.position)): is \(root.kindDescription), but a campaign is an object: write { ... }"
            )
        }
        var entries: [Entry] = []
        for member in members {
            if member.name == Self.armsKey {
                let own = try Self.armEntries(member, named)
                if let twice = members.first(where: { other in
                    own.contains { $0.name == other.name }
                }) {
                    throw .request(
                        "\(named(twice.position)): '\(twice.name)' is also set in 'arms': remove "
                            + "one of the two")
                }
                entries += own
                continue
            }
            let value: Value =
                switch member.value.content {
                case .boolean(let value): .boolean(value)
                case .number(let text): .number(text)
                case .string(let text): .string(text)
                case .array(let values):
                    Self.strings(values) ?? .other(member.value.kindDescription)
                default: .other(member.value.kindDescription)
                }
            entries.append(
                Entry(
                    name: member.name, nameLocation: named(member.position),
                    location: named(member.value.position), value: value))
        }
        self.entries = entries
    }

    /// Converts an array of strings; nil if it has other elements.
    private static func strings(_ values: [JSON5Value]) -> Value? {
        var texts: [String] = []
        for value in values {
            guard case .string(let text) = value.content else { return nil }
            texts.append(text)
        }
        return .strings(texts)
    }
}
