import BroadsideSupport
import BroadsideTestSupport
import Foundation
import Synchronization
import Testing

@testable import BroadsideCampaigns

/// What `tokens check` says about a list with rows that are not UTF-8.
@Suite struct OtherEncodingTests {
    private let directory: TemporaryDirectory

    init() throws { directory = try TemporaryDirectory() }

    /// Warnings about a list with a name in each row.
    private func warnings(_ names: [[UInt8]]) throws -> [String] {
        var bytes = Array("token,name\n".utf8)
        for (number, name) in names.enumerated() {
            bytes += Array("\(hexToken(number)),".utf8) + name + Array("\n".utf8)
        }
        let path = "\(directory.path)/list.csv"
        try Data(bytes).write(to: URL(fileURLWithPath: path))
        let lines = Mutex<[String]>([])
        let host = HostedRun { line in lines.withLock { $0.append(line) } }
        _ = try HostedRun.$current.withValue(host) {
            try TokensCheck(TokensOptions(tokens: path), countsDuplicates: false)
        }
        return lines.withLock { $0 }
    }

    // 'Jürgen' in WINDOWS-1252, '表示' in SHIFT_JIS, 'Łukasz' in WINDOWS-1250 and 'Олег' in
    // WINDOWS-1251. All can be read as WINDOWS-1252, so the bytes do not name the encoding.
    @Test(
        arguments: [
            [0x4a, 0xfc, 0x72, 0x67, 0x65, 0x6e], [0x95, 0x5c, 0x8e, 0xa6],
            [0xa3, 0x75, 0x6b, 0x61, 0x73, 0x7a], [0xce, 0xeb, 0xe5, 0xe3],
        ] as [[UInt8]])
    func `The command for a list in another encoding leaves the encoding to the reader`(
        name: [UInt8]
    ) throws {
        let found = try warnings([Array("Ann".utf8), name])
        #expect(found.count == 1 && found[0].contains("the row on line 3 is not UTF-8 text"))
        let command = "(iconv -f ENCODING -t UTF-8 < \(directory.path)/list.csv > list.fixed.csv)"
        #expect(found.first?.contains(command) == true, "\(found)")
        for words in ["often WINDOWS-1252 in Western Europe", "check them with --preview 3"] {
            #expect(found.first?.contains(words) == true, "\(found)")
        }
    }

    @Test(arguments: [[0, 1], [1, 0]])
    func `A list in which only some rows are not UTF-8 is not to be converted as a whole`(
        order: [Int]
    ) throws {
        let names = [Array("Zoë".utf8), [0x4a, 0xfc, 0x72, 0x67]]
        let found = try warnings([Array("Ann".utf8)] + order.map { names[$0] })
        let (utf8Line, line) = (order[0] == 0 ? 3 : 4, order[0] == 0 ? 4 : 3)
        #expect(found.count == 1 && found[0].contains("the row on line \(line) is not UTF-8 text"))
        let words = "the row on line \(utf8Line) is UTF-8 text; if it looks right, only some rows"
        #expect(found.first?.contains(words) == true, "\(found)")
        #expect(found.first?.contains("iconv -f") == false, "\(found)")
    }

    @Test func `A list in UTF-8 has no advice about its encoding`() throws {
        #expect(try warnings(["Zoë", "Łukasz", "表示"].map { Array($0.utf8) }).isEmpty)
    }
}
