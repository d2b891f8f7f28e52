import BroadsideRows

/// A token list as users have them: any case, spaces, carriage returns, blank lines, and rows
/// without a valid token. It also has the meaning of each row.
struct SimulatedList {
    /// The bytes of the list's file.
    let bytes: [UInt8]
    /// Canonical token of each row; nil for a row without a valid token.
    let tokens: [[UInt8]?]
    /// The same tokens as the list has them.
    let texts: [[UInt8]]
    /// Line on which each row starts, from 1, and range of its bytes, including the line end.
    let lines: [Int]
    let ranges: [Range<Int>]
    /// Number of bytes before all rows.
    let headerCount: Int
    /// Whether some tokens occur several times, and each copy gets its own response.
    let hasCopies: Bool
    /// Format of the list.
    let layout: RowLayout

    /// - Parameter isUnique: Whether no token occurs twice, even if the list is short.
    init(rowCount: Int, hasCopies: Bool, isUnique: Bool = false, random: SimulationRandom) {
        self.hasCopies = hasCopies
        var random = random
        var bytes: [UInt8] = []
        var tokens: [[UInt8]?] = []
        var texts: [[UInt8]] = []
        var lines: [Int] = []
        var ranges: [Range<Int>] = []
        var seen: Set<[UInt8]> = []
        let isPlain = random.chance(0.4)
        let malformed = random.pick([0, 0, 0.01, 0.3])
        let hasColumns = random.chance(0.25)
        if hasColumns { bytes += Array("note,token\r\n".utf8) }
        headerCount = bytes.count
        layout =
            hasColumns
            ? try! RowLayout(
                format: .csv, names: ["token"], header: Array("note,token".utf8)) : .lines
        for row in 0..<rowCount {
            let ending = !isPlain && random.chance(0.1) ? "\r\n" : "\n"
            if !isPlain, random.chance(0.05) { bytes += Array(random.pick(["\n", "  \n"]).utf8) }
            let start = bytes.count
            if hasColumns {
                let notes = ["", "x", "\"a, b\"", "\"two\nlines, \"\"said\"\"\""]
                bytes += Array(random.pick(notes).utf8) + [UInt8(ascii: ",")]
            }
            if random.chance(malformed) {
                let text = Array(random.pick(["oops", "abc", "0g", "ff ff", "é"]).utf8)
                bytes += text
                tokens.append(nil)
                texts.append(text)
            } else {
                let digits = isPlain || random.chance(0.9) ? 64 : random.pick([2, 8, 66, 160, 200])
                var drawn = Self.token(digits: digits, random: &random)
                while isUnique, !seen.insert(drawn).inserted {
                    drawn = Self.token(digits: 64, random: &random)
                }
                let isCopy = hasCopies && row > 0 && random.chance(0.3)
                let token = isCopy ? tokens[random.below(row)] ?? drawn : drawn
                let text = Self.written(token, isPlain: isPlain, random: &random)
                bytes += text
                tokens.append(token)
                texts.append(text)
            }
            let isLast = row == rowCount - 1
            if !isLast || random.chance(0.7) { bytes += Array(ending.utf8) }
            ranges.append(start..<bytes.count)
        }
        var line = 1
        var counted = 0
        for range in ranges {
            line += bytes[counted..<range.lowerBound].count { $0 == 0x0a }
            lines.append(line)
            counted = range.lowerBound
        }
        self.lines = lines
        self.ranges = ranges
        self.bytes = bytes
        self.tokens = tokens
        self.texts = texts
    }

    /// The row of each token, by the token's bytes.
    var rowOfToken: [[UInt8]: Int] {
        var rows: [[UInt8]: Int] = [:]
        for (row, token) in tokens.enumerated() {
            guard let token else { continue }
            let nibbles = token.map { $0 < 58 ? $0 - 48 : $0 - 87 }
            let bytes = stride(from: 0, to: nibbles.count, by: 2).map {
                nibbles[$0] << 4 | nibbles[$0 + 1]
            }
            rows[bytes] = row
        }
        return rows
    }

    private static func token(digits: Int, random: inout SimulationRandom) -> [UInt8] {
        var token: [UInt8] = []
        while token.count < digits {
            let nibble = UInt8(truncatingIfNeeded: random.next() & 15)
            token.append(nibble < 10 ? 48 + nibble : 87 + nibble)
        }
        return token
    }

    private static func written(
        _ token: [UInt8], isPlain: Bool, random: inout SimulationRandom
    ) -> [UInt8] {
        guard !isPlain else { return token }
        switch random.below(10) {
        case 0:
            return token.map { $0 >= 97 ? $0 - 32 : $0 }
        case 1:
            return [0x20, 0x09] + token + [0x20]
        case 2 where token.count == 64:
            var text: [UInt8] = [UInt8(ascii: "<")]
            for start in stride(from: 0, to: token.count, by: 8) {
                if start > 0 { text.append(0x20) }
                text += token[start..<min(start + 8, token.count)]
            }
            return text + [UInt8(ascii: ">")]
        default:
            return token
        }
    }
}
