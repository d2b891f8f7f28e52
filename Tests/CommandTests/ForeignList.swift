import BroadsideTestSupport
import Foundation
import Testing

/// A list in a form that people have and that is not read as it is, and what the command that is printed
/// for it makes.
struct ForeignList: CustomTestStringConvertible, Sendable {
    /// The file's name.
    var name: String
    var bytes: [UInt8]
    /// What the message says beside the command.
    var says: [String]
    /// The lines of what the command makes.
    var lines: [String]
    /// Options with which the result is read.
    var more: [String] = []
    /// Whether it can be read from standard input as well.
    var isPiped = true
    /// How many of the lines are device tokens.
    var valid: Int

    var testDescription: String { name }

    init(
        _ name: String, _ bytes: [UInt8], says: [String], lines: [String], more: [String] = [],
        isPiped: Bool = true, valid: Int = 3
    ) {
        self.name = name
        self.bytes = bytes
        self.says = says
        self.lines = lines
        self.more = more
        self.isPiped = isPiped
        self.valid = valid
    }

    static let tokens = (0..<3).map { DeviceTokens(count: 9).token($0) }

    /// Rows that are not device tokens, and that no command makes tokens of.
    private static let others = [
        "oops", "dead-beef", "123E4567-E89B-12D3-A456-426614174000", "it's ab\"cd", "#1234", "fée",
    ]

    private static func groups(_ token: String, of count: Int, _ separator: String) -> String {
        let digits = Array(token)
        return stride(from: 0, to: digits.count, by: count).map {
            String(digits[$0..<min($0 + count, digits.count)])
        }.joined(separator: separator)
    }

    private static func bytes(_ token: String) -> [UInt8] {
        stride(from: 0, to: token.count, by: 2).map { offset in
            let start = token.index(token.startIndex, offsetBy: offset)
            return UInt8(token[start..<token.index(start, offsetBy: 2)], radix: 16)!
        }
    }

    private static func base64(_ token: String) -> String {
        Data(bytes(token)).base64EncodedString()
    }

    /// A list of lines of which each is written so.
    private static func written(
        _ name: String, says: [String], _ form: (String) -> String
    ) -> ForeignList {
        let tokens = (0..<9).map { DeviceTokens(count: 9).token($0) }
        let text = tokens.map(form) + others
        return ForeignList(
            name, Array((text.joined(separator: "\n") + "\n").utf8),
            says: says + ["line 1: "], lines: tokens + others, valid: 9)
    }

    /// Lists of lines: rows of the kind change, others stay.
    static let ofLines: [ForeignList] = [
        written("hyphens.txt", says: ["remove the hyphens"]) {
            groups($0.uppercased(), of: 2, "-")
        },
        written("groups.txt", says: ["remove the hyphens"]) { groups($0, of: 8, "-") },
        written("it's spaced.txt", says: ["blanks or colons"]) { groups($0, of: 2, " ") },
        written("colons.txt", says: ["blanks or colons"]) { groups($0, of: 2, ":") },
        written("base64.txt", says: ["in base64"]) { base64($0) },
        written("urlsafe", says: ["in base64"]) {
            base64($0).replacing("+", with: "-").replacing("/", with: "_").replacing("=", with: "")
        },
        written("quotes.txt", says: ["in quotes"]) { "\"\($0)\"" },
        written("curly.txt", says: ["in quotes"]) { "“\($0)”" },
        written("prefix.list", says: ["remove 0x"]) { "0x\($0)" },
        written("labels.txt", says: ["remove the text in front"]) { "ios:\($0)" },
        written("bytea.txt", says: ["bytea"]) { "\\x\($0)" },
        written("copied.txt", says: ["bytea"]) { "\\\\x\($0)" },
        written("python.txt", says: ["b'...'"]) { "b'\($0)'" },
        written("repr.txt", says: ["Python"]) { token in
            "b'"
                + bytes(token).map { "\\x" + ($0 < 16 ? "0" : "") + String($0, radix: 16) }.joined()
                + "'"
        },
        written("nsdata.txt", says: ["NSData"]) {
            "{length = 32, bytes = 0x\(groups($0, of: 8, " "))}"
        },
        written("url.txt", says: ["URL-encoded"]) { "%3C\(groups($0, of: 8, "%20"))%3E" },
        written("space.txt", says: ["invisible"]) { "\u{a0}\($0)\u{200b}" },
        written("excel.txt", says: ["spreadsheet"]) { "=\"\($0)\"" },
        written("apostrophes.txt", says: ["spreadsheet"]) { "'\($0)" },
        written("optionals.txt", says: ["Optional(...)"]) { "Optional(\"\($0)\")" },
        written("list.txt.gz", says: ["remove 0x", "gzip -dc"]) { "0x\($0)" },
    ]

    private static func oneLine(_ name: String, _ separator: String) -> ForeignList {
        ForeignList(
            name, Array((tokens.joined(separator: separator) + "\n").utf8),
            says: ["several device tokens on the first line", "one per line"], lines: tokens)
    }

    private static let objects = tokens.enumerated().map {
        "{\"n\":12345678901234567890\($0.offset),\"deviceToken\":\"\($0.element)\"}"
    }.joined(separator: ",\n")
    private static let objectsByID = tokens.enumerated().map {
        "\"-Nx\($0.offset)\":{\"n\":12345678901234567890\($0.offset),\"deviceToken\":\"\($0.element)\"}"
    }.joined(separator: ",\n")
    /// Users whose tokens are keys.
    private static let usersOfTokens = tokens.enumerated().map {
        "\"u\($0.offset)\":{\"ad\":1,\"tokens\":{\"\($0.element)\":true}}"
    }.joined(separator: ",")
    /// The objects as Python writes them.
    private static let objectLines = tokens.enumerated().map {
        "{\"n\": 12345678901234567890\($0.offset), \"deviceToken\": \"\($0.element)\"}"
    }
    /// The rows of two users, with the values of the user that the row does not have itself.
    private static let profileLines =
        tokens[..<2].enumerated().map {
            "{\"n\": 12345678901234567890\($0.offset), \"name\": \"Ann\", \"x\": 1, \"deviceToken\": "
                + "\"\($0.element)\"}"
        } + ["{\"name\": null, \(objectLines[2].dropFirst())"]
    private static let names = ["--token-column", "deviceToken"]

    private static func json(
        _ name: String, _ text: String, says: [String], lines: [String]? = nil, more: [String] = []
    ) -> ForeignList {
        ForeignList(
            name, Array(text.utf8), says: ["JSON"] + says, lines: lines ?? objectLines, more: more)
    }

    private static let table = ["token,name"] + tokens.map { "\($0),Ann" }

    private static func wide(_ text: String, isBig: Bool) -> [UInt8] {
        text.utf16.flatMap { unit in
            let bytes = [UInt8(truncatingIfNeeded: unit), UInt8(unit >> 8)]
            return isBig ? bytes.reversed() : bytes
        }
    }

    /// Files of another kind.
    static let ofFiles: [ForeignList] = [
        oneLine("commas.txt", ","), oneLine("commas.csv", ", "), oneLine("blanks", " "),
        oneLine("semicolons.txt", ";"), oneLine("bars.txt", "|"), oneLine("tabs.txt", "\t"),
        oneLine("quoted.txt", "\",\""),
        json(
            "array.json", "[\(objects)]", says: ["--token-column deviceToken"], more: names),
        json(
            "texts.json", "[\n\"\(tokens.joined(separator: "\",\n\""))\"\n]", says: ["per line"],
            lines: tokens),
        json(
            "parse.json", "{\"results\":[\(objects)]}", says: ["--token-column deviceToken"],
            more: names),
        json(
            "pages.jsonl",
            objectLines.map { "{\"page\": 1, \"devices\": [\($0)]}\n" }.joined(separator: "\n"),
            says: ["on each line", "--token-column deviceToken"],
            lines: objectLines.map { "{\"page\": 1, \($0.dropFirst())" }, more: names),
        json(
            "profiles.jsonl",
            "{\"n\": 0, \"name\": \"Ann\", \"at\": {\"x\": 1, \"all\": "
                + "[\(objectLines[0]), \(objectLines[1]), null]}}\n"
                + "{\"name\": null, \"at\": {\"all\": [\(objectLines[2])]}}\n",
            says: ["on each line", "--token-column deviceToken"], lines: profileLines,
            more: names),
        json(
            "pretty.json", "{\n  \"count\": 3,\n  \"data\": {\n \"list\": [\(objects)]}}",
            says: ["--token-column deviceToken"], more: names),
        json(
            "tokens.json", "{\n\"tokens\": [\"\(tokens.joined(separator: "\",\""))\"]}",
            says: ["per line"], lines: tokens),
        json(
            "ids.json",
            "{\(objectsByID)}", says: ["--token-column deviceToken"], more: names),
        json(
            "users.json", "{\"users\":{\(objectsByID)}}", says: ["--token-column deviceToken"],
            more: names),
        json(
            "absent.jsonl",
            objectLines.map { "{\"devices\": [\($0)]}\n" }.joined()
                + "{\"devices\": null}\n{\"page\": 1}\n",
            says: ["on each line", "--token-column deviceToken"], more: names),
        json(
            "second.json", "{\"scopes\": [\"read\"], \"devices\": [\(objects)]}",
            says: ["--token-column deviceToken"], more: names),
        json(
            "cells.jsonl", tokens.map { "[\"Ann\", 123400, \"\($0)\"]\n" }.joined(),
            says: ["per line"], lines: tokens),
        json(
            "cells.json", "[\(tokens.map { "[\"\($0)\", 12]" }.joined(separator: ","))]",
            says: ["per line"], lines: tokens),
        // What its name says, it is not.
        json(
            "texts.csv", "[\"\(tokens.joined(separator: "\", \""))\"]", says: ["per line"],
            lines: tokens),
        json(
            "keys.json", "{\(tokens.map { "\"\($0)\":{\"name\":\"x\"}" }.joined(separator: ","))}",
            says: ["keys are device tokens"], lines: tokens),
        json(
            "keys.jsonl", tokens.map { "{\"\($0)\":{\"name\":\"x\"}}\n" }.joined(),
            says: ["keys are device tokens"], lines: tokens),
        json(
            "firebase.json", "{\"users\":{\(usersOfTokens)}}",
            says: ["keys are device tokens"], lines: tokens),
        json(
            "firebase.jsonl",
            tokens.map { "{\"n\":null,\"tokens\":{\"\($0)\":{\"os\":[1]}}}\n" }.joined(),
            says: ["keys are device tokens, on each line"], lines: tokens),
        ForeignList(
            "wrapped.csv",
            Array(table.map { "\"\($0.replacing("\"", with: "\"\""))\"\r\n" }.joined().utf8),
            says: ["whole header in one pair of quotes"], lines: table.map { $0 + "\r" }),
        ForeignList(
            "titles.csv", Array("Devices, all\r\n\r\n\(table.joined(separator: "\r\n"))\r\n".utf8),
            says: ["has its column names on line 3", "the 2 lines above"],
            lines: table.map { $0 + "\r" }),
        ForeignList(
            "title", Array("Devices\n\(table.joined(separator: "\n"))\n".utf8),
            says: ["has its column names on line 2", "the line above"], lines: table),
        ForeignList(
            "marked.csv", wide("\u{feff}\(table.joined(separator: "\n"))\n", isBig: true),
            says: ["UTF-16"], lines: table),
        ForeignList(
            "little.csv", wide("\(table.joined(separator: "\n"))\n", isBig: false),
            says: ["little-endian"], lines: table),
        ForeignList(
            "big.csv", wide("\(table.joined(separator: "\n"))\n", isBig: true),
            says: ["big-endian"], lines: table),
    ]
}
