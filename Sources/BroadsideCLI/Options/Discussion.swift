import BroadsideCampaigns
import BroadsideSupport

/// Parsed discussion of a command, for pages with their own layout.
struct Discussion {
    /// A term and its meaning.
    typealias Entry = (word: String, meaning: String)

    enum Part {
        case paragraph(String)
        case entries([Entry])
    }

    private(set) var parts: [Part] = []
    /// The exit codes with their meanings, if the discussion lists them.
    private(set) var exitCodes: [Entry] = []

    init(of command: CommandDescription) {
        let start = "Exit codes: "
        for lines in command.discussion.split(separator: "\n", omittingEmptySubsequences: false)
            .split(separator: "")
        {
            if lines.contains(where: Self.isEntry) {
                parts.append(.entries(Self.entries(lines)))
                continue
            }
            var text = lines.joined(separator: " ")
            if let range = text.firstRange(of: start) {
                exitCodes = text[range.upperBound...].split(separator: ";").map(Self.exitCode)
                text = String(text[..<range.lowerBound])
            }
            while text.last == " " { text.removeLast() }
            if !text.isEmpty { parts.append(.paragraph(text)) }
        }
    }

    /// Removes the entries for which `isRemoved` returns true.
    mutating func removeEntries(where isRemoved: (Entry) -> Bool) {
        parts = parts.map { part in
            guard case .entries(let entries) = part else { return part }
            return .entries(entries.filter { !isRemoved($0) })
        }
    }

    /// Parses an exit code such as `3 rows are left over.` into number and meaning.
    private static func exitCode(_ text: Substring) -> Entry {
        var trimmed = text.drop { $0 == " " }
        if trimmed.hasSuffix(".") { trimmed.removeLast() }
        let number = trimmed.prefix { $0.isNumber }
        return (String(number), String(trimmed.dropFirst(number.count + 1)))
    }

    /// Whether a line explains a term: two blanks separate it from its meaning.
    private static func isEntry(_ line: Substring) -> Bool {
        !line.hasPrefix(" ") && line.firstRange(of: "  ") != nil
    }

    /// Parses lines with terms and meanings; indented lines continue the previous one.
    private static func entries(_ lines: some Sequence<Substring>) -> [Entry] {
        var result: [Entry] = []
        for line in lines {
            let text = String(line.drop { $0 == " " })
            if isEntry(line), let gap = text.firstRange(of: "  ") {
                let meaning = text[gap.upperBound...].drop { $0 == " " }
                result.append((String(text[..<gap.lowerBound]), String(meaning)))
            } else if !result.isEmpty {
                result[result.count - 1].meaning += " " + text
            }
        }
        return result
    }
}
