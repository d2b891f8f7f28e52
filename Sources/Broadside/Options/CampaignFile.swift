internal import BroadsidePrimitives
package import BroadsideSupport

/// A campaign's settings in a file (JSON5): options by their long names, and where each stands.
package struct CampaignFile {
    /// One setting.
    package struct Entry {
        /// The option's name, without dashes.
        package var name: String
        /// The name and the value, each with file, line and column for errors.
        package var nameLocation: String
        package var location: String
        package var value: Value
    }

    /// What a setting says.
    package enum Value {
        case boolean(Bool)
        case number(String)
        case string(String)
        /// For options that may be repeated.
        case strings([String])
        /// What no option takes, in words.
        case other(String)
    }

    /// The settings in the file's order.
    package let entries: [Entry]
    /// What relative paths in the file begin with: its folder and a slash, or nothing.
    package let folder: String

    /// The most bytes of a campaign file.
    static let sizeLimit = 1 << 20

    /// Reads a file.
    package init(path: String) throws(BroadsideError) {
        let bytes = try readFile(path, option: "campaign", limit: Self.sizeLimit)
        folder = path.parts(atLast: "/").map { "\($0.before)/" } ?? ""
        func named(_ location: JSON5Position) -> String {
            "--campaign \(path), line \(location.line), column \(location.column)"
        }
        if let problem = UTF16Text.problem(bytes.rawSpan) {
            throw .request("--campaign \(path) \(problem)")
        }
        let root: JSON5Value
        do {
            root = try JSON5Reader.read(bytes)
        } catch {
            throw .request("\(named(error.position)): \(error.message)")
        }
        guard case .object(let members) = root.content else {
            throw .request(
                "\(named(root.position)): is \(root.kindDescription): a campaign is an object, { ... }"
            )
        }
        var entries: [Entry] = []
        for member in members {
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

    /// An array of strings; nil for any other.
    private static func strings(_ values: [JSON5Value]) -> Value? {
        var texts: [String] = []
        for value in values {
            guard case .string(let text) = value.content else { return nil }
            texts.append(text)
        }
        return texts.isEmpty ? nil : .strings(texts)
    }
}
