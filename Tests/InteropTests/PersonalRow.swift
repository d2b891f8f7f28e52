import Foundation

/// A row whose payload is its own: what a list says of it, and what has to come of that.
struct PersonalRow: Sendable {
    var name: String
    var text: String
    var badge: String
    /// nil: the row lacks this column, the last.
    var vip: String?

    static let template = #"""
        {
          "aps" : {"alert": {"title": "F\u00fcr {{name|friend \"x\"}}: {{{{x}}", "body": "{{text}}"},
                   "badge": "{{ badge:int|0 }}"},
          "vip":"{{vip:bool}}",  "n": 1.50, "t": "{{text}}|{{name|}}"
        }
        """#

    static let columns = ["name", "text", "badge", "vip"]
    var values: [String?] { [name, text, badge, vip] }

    /// The payload it must get, its keys in order; nil: none, for `reason`.
    func expectation() throws -> (payload: String?, reason: String) {
        let trimmed = badge.trimmingCharacters(in: CharacterSet(charactersIn: " "))
        let badgeText = trimmed.replacing(/^(.*[0-9])\.0+$/) { String($0.output.1) }
        guard let number = badge.isEmpty ? 0 : Int(badgeText), number >= 0 else {
            return (nil, "BadValue")
        }
        guard let vip else { return (nil, "MissingColumn") }
        let flag: Bool
        switch vip.lowercased() {
        case "true", "t", "1": flag = true
        case "false", "f", "0": flag = false
        default: return (nil, "BadValue")
        }
        // A value of which nothing can be seen gets the default.
        let name = name == "\u{2028}" ? "" : name
        let title = "Für \(name.isEmpty ? "friend \"x\"" : name): {{x}}"
        let object: [String: Any] = [
            "aps": ["alert": ["title": title, "body": text], "badge": number],
            "vip": flag, "n": 1.5, "t": "\(text)|\(name)",
        ]
        // What the template repeats is counted in it: the limit holds for the whole.
        if text.utf8.count > 2_000 { return (nil, "PayloadTooLarge") }
        return (try Self.canonical(object), "")
    }

    static func canonical(_ object: Any) throws -> String {
        let data = try JSONSerialization.data(withJSONObject: object, options: [.sortedKeys])
        return String(decoding: data, as: UTF8.self)
    }

    static func canonical(text: String) throws -> String {
        try canonical(try JSONSerialization.jsonObject(with: Data(text.utf8)))
    }

    /// Rows with all that is hard to write into JSON, and rows that can't be sent.
    static func make(_ count: Int) -> [PersonalRow] {
        let texts = [
            "plain", "", "q\"uo\"te", "back\\slash\\", "\\\"", "line\nfeed", "cr\r\nlf", "tab\t",
            "😀🇧🇷",
            "e\u{301}", "\u{1}\u{1f}\u{7f}", "{{name}}", "}}", "a,b;c", "'single'", "\u{2028}", "/",
            "\u{0}nul", String(repeating: "é", count: 500), String(repeating: "x", count: 2_500),
            " blanks ", "\"", "\"\"",
        ]
        let badges = [
            "1", "0", "-7", "", "007", "+5", " 12 ", "9223372036854775807", "x", "1.0",
            "9223372036854775808", "1e3", "-", "7.5", "-3.00", ".0",
        ]
        let flags: [String?] = ["true", "FALSE", "1", "0", "True", nil, "yes", "", "t", "F"]
        return (0..<count).map { row in
            PersonalRow(
                name: texts[(row * 7 + row / 23) % (texts.count - 5)],
                text: texts[row % texts.count],
                badge: row % 3 == 0 ? badges[row / 3 % badges.count] : "\(row)",
                vip: row % 4 == 0 ? flags[row / 4 % flags.count] : "true")
        }
    }

    /// The row as a line with tabs can have it: no field has line breaks, and tabs are text only where no
    /// field is missing.
    var onOneLine: PersonalRow {
        func text(_ text: String) -> String {
            let line = text.replacing("\r\n", with: " ").replacing("\n", with: " ")
            return vip == nil ? line.replacing("\t", with: " ") : line
        }
        return PersonalRow(name: text(name), text: text(self.text), badge: badge, vip: vip)
    }

    /// The list as a table; a row that lacks the last column ends before it.
    static func table(_ rows: [PersonalRow], tokens: (Int) -> String, separator: String) -> String {
        func field(_ text: String) -> String {
            let special = CharacterSet(charactersIn: "\"\n\r" + separator)
            guard text.unicodeScalars.contains(where: { special.contains($0) }) else { return text }
            return "\"" + text.replacingOccurrences(of: "\"", with: "\"\"") + "\""
        }
        var lines = [(["token"] + columns).joined(separator: separator)]
        for (index, row) in rows.enumerated() {
            lines.append(
                ([tokens(index)] + row.values.compactMap { $0 }.map(field))
                    .joined(separator: separator))
        }
        return lines.joined(separator: "\r\n") + "\r\n"
    }

    /// The list as JSON Lines; Foundation escapes slashes, every other row is all escapes.
    static func lines(_ rows: [PersonalRow], tokens: (Int) -> String) throws -> String {
        var lines: [String] = []
        for (index, row) in rows.enumerated() {
            var members = ["\"token\": \"\(tokens(index))\""]
            for (column, value) in zip(columns, row.values) {
                guard let value else {
                    if index % 8 == 0 { members.append("\"\(column)\": null") }
                    continue
                }
                let isPlain = value == (column == "badge" ? "\(index)" : "true")
                members.append(
                    "\"\(column)\":"
                        + (isPlain ? value : literal(value, isAllEscapes: index % 2 == 0)))
            }
            lines.append("{\(members.joined(separator: ","))}")
        }
        return lines.joined(separator: "\n")
    }

    private static func literal(_ text: String, isAllEscapes: Bool) -> String {
        guard isAllEscapes else {
            let data = try? JSONSerialization.data(withJSONObject: [text])
            return String(decoding: data!.dropFirst().dropLast(), as: UTF8.self)
        }
        let units = text.utf16.map { unit in
            "\\u" + String(repeating: "0", count: 4 - String(unit, radix: 16).count)
                + String(unit, radix: 16, uppercase: true)
        }
        return "\"\(units.joined())\""
    }
}
