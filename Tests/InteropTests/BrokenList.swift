import BroadsideTestSupport

/// The same rows, some of them broken, written in each format.
struct BrokenList {
    /// A row: what the list says, and the token that is to be sent for it; nil: none.
    struct Row {
        /// What stands where the token should; nil: nothing at all.
        var text: String?
        var token: String?
    }

    let rows: [Row]

    /// Ten ways in which a row can be broken, each possible in every format.
    private static func broken(_ kind: Int, _ token: String) -> String? {
        switch kind {
        case 0: String(token.dropLast())
        case 1: "g" + token.dropFirst()
        case 2: token + token + token + token
        case 3: "7"
        case 4: token.prefix(8) + " " + token.dropFirst(8)
        case 5: "ä" + token.dropFirst(2)
        case 6: "<" + token
        case 7: "0x" + token
        case 8: "\(token.prefix(8))-\(token.dropFirst(8))"
        // Nothing where a token should be; a list of lines has no way to say that but a word.
        default: nil
        }
    }

    /// Ways to write a token that are accepted.
    private static func written(_ kind: Int, _ token: String) -> String {
        switch kind {
        case 0: token.uppercased()
        case 1: "  \(token) "
        case 2: "<\(token.prefix(8)) \(token.dropFirst(8))>"
        default: token
        }
    }

    init(count: Int, brokenCount: Int) {
        let tokens = DeviceTokens(count: count)
        let step = count / brokenCount
        rows = (0..<count).map { row in
            let token = tokens.token(row)
            if row % step == step / 2 {
                return Row(text: Self.broken(row / step % 10, token), token: nil)
            }
            return Row(text: Self.written(row % 40, token), token: token)
        }
    }

    /// The list's bytes, and the line on which each row starts.
    func text(_ format: String) -> (text: [UInt8], lines: [Int]) {
        var text: [UInt8] = []
        var line = 1
        var lines: [Int] = []
        func add(_ words: String) {
            text += Array(words.utf8)
            line += words.utf8.count { $0 == 0x0a }
        }
        let separator = format == "tsv" ? "\t" : ","
        if separator == "," || format == "tsv" {
            if format == "csv" { add("\u{feff}\"na\"\"me\",token,note\r\n") }
            if format == "tsv" { add("name\ttoken\tnote\n") }
        }
        for (number, row) in rows.enumerated() {
            if number % 97 == 50 { add("\n") }
            lines.append(line)
            switch format {
            case "lines": add((row.text ?? "none") + (number % 13 == 0 ? "\r\n" : "\n"))
            case "jsonl":
                let value = row.text.map { "\"\($0)\"" } ?? "null"
                add("{\"id\":\(number),\"token\":\(value),\"x\":{\"token\":\"no\"}}\n")
            default:
                guard let value = row.text else {
                    add("short\n")
                    continue
                }
                // A note over two lines moves the lines of all rows behind it; between tabs none is.
                let lineEnd = format == "tsv" ? " " : "\n"
                let note =
                    number % 31 == 0 ? "\"two\(lineEnd)lines\(separator) \"\"q\"\"\"" : "plain"
                let field = number % 7 == 0 ? "\"\(value)\"" : value
                add("a\(separator)\(field)\(separator)\(note)\(number % 13 == 0 ? "\r\n" : "\n")")
            }
        }
        return (text, lines)
    }
}
