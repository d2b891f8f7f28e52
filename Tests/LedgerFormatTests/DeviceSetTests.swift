import BroadsideAPNs
import Testing

@testable import BroadsideLedgerFormat

struct DeviceSetTests {
    private func token(_ number: Int) -> [UInt8] {
        let digits = String(number, radix: 16)
        return Array((String(repeating: "0", count: 64 - digits.utf8.count) + digits).utf8)
    }

    private func masked(_ text: String, _ devices: inout DeviceSet) -> String {
        var bytes = Array(text.utf8)
        _ = devices.maskTokens(in: &bytes)
        return String(decoding: bytes, as: UTF8.self)
    }

    @Test func `A set that grows finds each device, counts it once per ledger, and no other`() {
        var devices = DeviceSet()
        for number in 0..<5_000 {
            let isNew = devices.insert(token(number).span.bytes)
            #expect(isNew)
        }
        let again = devices.insert(token(1).span.bytes)
        #expect(again && devices.count == 5_000)
        for ledger in 1...2 {
            devices.beginLedger()
            for number in stride(from: 0, to: 10_000, by: 2) {
                for _ in 0..<2 {
                    let isFound = devices.find(token: token(number).span.bytes)
                    #expect(isFound == (number < 5_000))
                }
            }
            #expect(devices.foundCount == 2_500, "ledger \(ledger)")
        }
        #expect(devices.foundAnywhereCount == 2_500)
        let isNothing = devices.find(0)
        #expect(!isNothing)
    }

    @Test func `Tokens in a text lose their digits in any case and place, others stay`() {
        var devices = DeviceSet()
        _ = devices.insert(token(0xabc).span.bytes)
        let long = Array(String(repeating: "5e", count: 80).utf8)
        _ = devices.insert(long.span.bytes)
        _ = devices.insert(Array("abcd".utf8).span.bytes)
        devices.beginLedger()
        let one = String(decoding: token(0xabc), as: UTF8.self)
        let other = String(decoding: token(0xabd), as: UTF8.self)
        let stars = String(repeating: "*", count: 64)
        #expect(masked("--to=\(one)", &devices) == "--to=\(stars)")
        #expect(masked("\(one.uppercased())|\(other)", &devices) == "\(stars)|\(other)")
        #expect(masked("1f\(one)ee", &devices) == "1f\(stars)ee")
        #expect(
            masked("x\(String(decoding: long, as: UTF8.self))", &devices)
                == "x" + String(repeating: "*", count: 160))
        let (first, rest) = (one.prefix(8), one.dropFirst(8))
        for (left, between, right) in [("<", " ", ">"), ("", "-", ""), ("x ", "\t\r ", "-y")] {
            #expect(
                masked("\(left)\(first)\(between)\(rest)\(right)", &devices)
                    == "\(left)********\(between)\(stars.dropFirst(8))\(right)")
        }
        let bytes = stride(from: 0, to: 64, by: 2).map { String(one.dropFirst($0).prefix(2)) }
        #expect(
            masked("id:\(bytes.joined(separator: ":")):", &devices)
                == "id:" + [String](repeating: "**", count: 32).joined(separator: ":") + ":")
        #expect(masked("\(first),\(rest)", &devices) == "\(first),\(rest)")
        // Too short to be told from a part of a number.
        #expect(masked("abcd 1abcd2", &devices) == "abcd 1abcd2")
        #expect(devices.foundCount == 2)
    }

    /// A token, and the same token in base64.
    private static let base64 = (
        "fbefbeffffffc60f415da240c4f4c60f415da240c4f4c60f415da240c4f41234",
        "++++////xg9BXaJAxPTGD0FdokDE9MYPQV2iQMT0EjQ="
    )

    @Test(arguments: [
        "%", "a,\"%\"\r\nb", "--to=%", "ios:%;2", "ios-%/2", "*%*", "\\%",
    ])
    func `A token in base64 loses its letters and digits in either alphabet, also without padding`(
        text: String
    ) {
        var devices = DeviceSet()
        for token in [Self.base64.0, String(repeating: "5e", count: 80)] {
            _ = devices.insert(Array(token.utf8).span.bytes)
        }
        devices.beginLedger()
        func with(_ token: String) -> String {
            text.split(separator: "%", omittingEmptySubsequences: false).joined(separator: token)
        }
        let padded = Self.base64.1
        let short = String(padded.dropLast())
        let safe = String(short.map { $0 == "+" ? "-" : $0 == "/" ? "_" : $0 })
        let escaped = String(short.flatMap { $0 == "/" ? ["\\", "/"] : [$0] })
        for token in [padded, short, safe, escaped] {
            let mask = String(token.map { $0.isLetter || $0.isNumber ? "*" : $0 })
            #expect(masked(with(token), &devices) == with(mask))
        }
        #expect(devices.foundCount == 1)
    }

    @Test
    func `A token in base64 whose first slash follows letters and a backslash loses its letters`() {
        var devices = DeviceSet()
        let digits = "f415dafe" + String(repeating: "0", count: 56)
        _ = devices.insert(Array(digits.utf8).span.bytes)
        devices.beginLedger()
        let token = "9BXa\\/g" + String(repeating: "A", count: 37) + "="
        let stars = "****\\/*" + String(repeating: "*", count: 37) + "="
        #expect(masked("\"\(token)\"", &devices) == "\"\(stars)\"")
        #expect(devices.foundCount == 1)
    }

    @Test func `A text in base64 that is longer, shorter or another token stays`() {
        var devices = DeviceSet()
        _ = devices.insert(Array(Self.base64.0.utf8).span.bytes)
        devices.beginLedger()
        let token = Self.base64.1.dropLast()
        for text in [
            "\(token)A", "A\(token)", "\(token.dropLast())", "\(token.dropFirst())",
            "\(token.dropLast())R", "\(token.dropLast())A",
            "\(token.prefix(20)) \(token.dropFirst(20))",
        ] {
            #expect(masked(text, &devices) == text)
        }
        #expect(devices.foundCount == 0)
    }

    @Test func `A row without its letters and digits has its quotes, separators and line ends`() {
        var row = Array("\"Zo\u{eb}, 1\",<ab CD>\r\n{\"a\":1}".utf8)
        DeviceSet.maskRow(&row, 0..<row.count)
        #expect(String(decoding: row, as: UTF8.self) == "\"****, *\",<** **>\r\n{\"*\":*}")
        func isMasked(_ text: [UInt8]) -> Bool { DeviceSet.isMasked(text.span.bytes) }
        #expect(isMasked(row))
        for text in ["", "\"-\",<>", "**a*", "*1", "*\u{eb}"] {
            #expect(!isMasked(Array(text.utf8)), "\(text)")
        }
    }

    @Test func `Pages of a changed range are changed, and those beside them are not`() {
        var pages = PageSet()
        #expect(pages.isEmpty && !pages.intersects(0..<(1 << 40)))
        pages.insert(4_096 * 700..<4_096 * 700 + 1)
        #expect(!pages.isEmpty)
        #expect(pages.intersects(0..<4_096 * 700 + 1) && !pages.intersects(0..<4_096 * 700))
        #expect(!pages.intersects(4_096 * 701..<4_096 * 9_000))
        pages.insert(1 << 41..<1 << 41 + 1)
        #expect(pages.intersects(5..<6), "a list that is too long counts as changed")
    }
}
