import Foundation

/// Device tokens from which row and campaign can be read back:
/// 8 digits seed, 8 digits row, 48 digits that are the same in all.
package struct DeviceTokens: Sendable {
    package let seed: UInt32
    package let count: Int

    package init(seed: UInt32 = .random(in: 0 ... .max), count: Int) {
        self.seed = seed
        self.count = count
    }

    private static let tail = String(repeating: "0123456789abcdef", count: 3)
    private static func digits(_ value: UInt32) -> String {
        let text = String(value, radix: 16)
        return String(repeating: "0", count: 8 - text.count) + text
    }

    /// The token of a row.
    package func token(_ row: Int) -> String {
        Self.digits(seed) + Self.digits(UInt32(row)) + Self.tail
    }

    /// All of them, a line each.
    package func list() -> [UInt8] {
        let line = Array((token(0) + "\n").utf8)
        let hex = Array("0123456789abcdef".utf8)
        return [UInt8](unsafeUninitializedCapacity: count * line.count) { buffer, size in
            let base = buffer.baseAddress!
            for row in 0..<count {
                let at = base + row * line.count
                memcpy(at, line, line.count)
                var rest = row
                var place = 15
                while rest > 0 {
                    at[place] = hex[rest & 15]
                    rest >>= 4
                    place -= 1
                }
            }
            size = count * line.count
        }
    }

    /// All of them as CSV with rows of 1,600 bytes: few rows make a long list.
    package func wideList() -> [UInt8] {
        let note = String(repeating: "n", count: 1_534)
        return Array(("token,note\n" + (0..<count).map { "\(token($0)),\(note)\n" }.joined()).utf8)
    }

    /// How often each row's token follows `mark` in a server's log. The mark's first letter should
    /// be rare.
    package func tally(log path: String, mark: String) throws -> Tally {
        let log = try Data(contentsOf: URL(filePath: path), options: .alwaysMapped)
        return tally(log: log, mark: mark)
    }

    /// How often each row's token follows `mark`.
    package func tally(log: Data, mark: String) -> Tally {
        var tally = Tally(counts: Array(repeating: 0, count: count))
        let needle = Array((mark + Self.digits(seed)).utf8)
        log.withUnsafeBytes { bytes in
            guard var at = bytes.baseAddress else { return }
            let end = at + bytes.count
            while let found = memchr(at, Int32(needle[0]), end - at) {
                at = UnsafeRawPointer(found)
                guard end - at >= needle.count + 8 else { break }
                guard memcmp(at, needle, needle.count) == 0 else {
                    at += 1
                    continue
                }
                at += needle.count
                let digits = UnsafeRawBufferPointer(start: at, count: 8)
                if let row = Int(String(decoding: digits, as: UTF8.self), radix: 16), row < count {
                    tally.counts[row] += 1
                } else {
                    tally.strangers += 1
                }
            }
        }
        return tally
    }
}

/// How often a server saw each token.
package struct Tally: Sendable, CustomStringConvertible {
    package var counts: [Int]
    /// Tokens that no row has.
    package var strangers = 0

    /// Short: a failed expectation prints it.
    package var description: String {
        "\(total) of \(counts.count): \(missing) missing, \(repeated) repeated, "
            + "\(strangers) strangers"
    }

    package var total: Int { counts.reduce(0, +) }
    package var missing: Int { counts.count { $0 == 0 } }
    package var repeated: Int { counts.count { $0 > 1 } }
    /// True where each token was seen exactly once, and nothing else was.
    package var isExact: Bool { missing == 0 && repeated == 0 && strangers == 0 }
}

/// A token of 64 digits of its own.
package func hexToken(_ number: Int) -> String {
    let digits = String(UInt64(number) &* 0x9e37_79b9_7f4a_7c15, radix: 16)
    return String(repeating: "c", count: 64 - digits.count) + digits
}
