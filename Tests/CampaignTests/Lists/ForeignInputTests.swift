import Testing

@testable import Campaign

/// What people give in the place of a list, or of a token, is known by its beginning.
@Suite struct ForeignInputTests {
    private static let files: [(text: String, kind: ForeignFile?)] = [
        ("PK\u{3}\u{4}rest", .zip), ("PK\u{5}\u{6}", .zip), ("PK\u{3}\u{5}", nil),
        ("PK\u{3}\u{4}...[Content_Types].xml", .excelWorkbook),
        ("PK\u{3}\u{4}...xl/workbook", .excelWorkbook), ("PAR1", .parquet), ("PAR2", nil),
        ("Obj\u{1}", .avro), ("Obj\u{2}", nil), ("SQLite format 3\u{0}x", .sqlite),
        ("SQLite format 3 is a file", nil), ("BZh91AY", .bzip2), ("BZ", nil), ("%PDF-1.7", .pdf),
        ("%PDF1.7", nil), ("abcd\n", nil), ("", nil), ("xl/", nil),
        ("[{\"token\":\"a\"}]", .jsonArray), ("\u{feff}\n [", .jsonArray),
        ("{\n  \"token\"", .jsonDocument), (" \t{ \r\n", .jsonDocument), ("{", .jsonDocument),
        ("{\"token\":\"a\"}\n", nil), ("{ \"token\":1}\n{", nil), ("a[", nil),
    ]

    @Test(arguments: files.indices)
    func `A file that is not a list is known`(index: Int) {
        let (text, kind) = Self.files[index]
        #expect(ForeignFile.detect(Array(text.utf8), isDelimited: false) == kind, "\(text)")
        // The first row of a table may begin with a bracket.
        let isJSON = kind == .jsonArray || kind == .jsonDocument
        #expect(
            ForeignFile.detect(Array(text.utf8), isDelimited: true) == (isJSON ? nil : kind))
    }

    @Test func `Binary files and UTF-16 are known`() {
        for (bytes, kind) in [
            ([0xd0, 0xcf, 0x11, 0xe0, 0xa1, 0xb1, 0x1a, 0xe1, 0], .oldExcelWorkbook),
            ([0xd0, 0xcf, 0x11, 0xe0, 0xa1, 0xb1, 0x1a], nil),
            ([0xfd, 0x37, 0x7a, 0x58, 0x5a, 0x00], .xz),
            ([0x37, 0x7a, 0xbc, 0xaf, 0x27, 0x1c], .sevenZip), ([0x04, 0x22, 0x4d, 0x18], .lz4),
            ([0xff, 0xfe, 0x61, 0], .utf16), ([0xfe, 0xff, 0, 0x61], .utf16),
            ([0x61, 0, 0x62, 0], .utf16), ([0, 0x61, 0, 0x62], .utf16), ([0x61, 0], nil),
            ([0x61, 0, 0x62, 1], nil), ([0, 0, 0, 0], nil), ([0x61, 0, 0, 0x62], nil),
            ([0x61, 0, 0x62, 0, 0x63], .utf16),
        ] as [([UInt8], ForeignFile?)] {
            #expect(ForeignFile.detect(bytes, isDelimited: false) == kind, "\(bytes)")
            #expect(ForeignFile.detect(bytes, isDelimited: true) == kind)
        }
        // A zero behind the first 64 bytes decides nothing.
        let long = (0..<63).flatMap { _ in [0x61, 0] as [UInt8] }
        #expect(
            ForeignFile.detect(Array(long.prefix(64)) + [0x61, 0x61], isDelimited: false) == .utf16)
        #expect(
            ForeignFile.detect(Array(long.prefix(62)) + [0x61, 0x61], isDelimited: false) == nil)
    }

    @Test func `Each kind has a name, and a remedy that names the file where it has to`() {
        let names = Set(ForeignFile.allCases.map(\.name))
        #expect(names.count == ForeignFile.allCases.count)
        for kind in ForeignFile.allCases { #expect(!kind.remedy(file: "my list").isEmpty) }
        for kind in [ForeignFile.parquet, .utf16, .jsonArray] {
            #expect(kind.remedy(file: "my list").contains("my list"))
        }
        #expect(Set(ForeignToken.allCases.map(\.name)).count == ForeignToken.allCases.count)
        for kind in ForeignToken.allCases {
            let remedy = kind.remedy(file: "my list", isColumn: false)
            let isAboutFile = [.base64, .quoted, .prefixed].contains(kind)
            #expect(remedy.contains("my list") == isAboutFile)
            // A command for whole lines would change other columns.
            #expect(!kind.remedy(file: "my list", isColumn: true).contains("my list"))
        }
    }

    @Test func `A text that is not a token is known for what people call it`() {
        let token = String(repeating: "0a1B", count: 16)
        let base64 = "q8xQ+/3m" + String(repeating: "Ab1z", count: 8)
        let firebase = "c-Xy_1:APA91b" + String(repeating: "Z9_-", count: 30)
        for (text, kind) in [
            ("ExponentPushToken[abc]", .expo), ("ExpoPushToken[x]", .expo),
            (" ExpoPushToken[\t", .expo),
            ("ExpoPushToken", nil), ("\"\(token)\"", .quoted), ("'\(token)'\r", .quoted),
            ("\"\(token)'", nil), ("\"oops\"", nil), ("\"\"", nil), ("\"", nil),
            ("0x\(token)", .prefixed), ("0X\(token)", .prefixed), ("0x", nil), ("0xoops", nil),
            ("550e8400-e29b-41d4-a716-446655440000", .uuid),
            ("550E8400-E29B-41D4-A716-44665544000F", .uuid),
            ("550e8400-e29b-41d4-a716-44665544000", nil),
            ("550e8400-e29b-41d4-a716-4466554400000", nil),
            ("550e8400e-29b-41d4-a716-446655440000", nil),
            ("550e8400-e29b-41d4-a716-44665544000g", nil),
            ("550e8400-e29b-41d4a-716-446655440000", nil),
            ("550e8400-e29b4-1d4-a716-446655440000", nil),
            ("550e8400-e29b-41d4-a7164-46655440000", nil),
            (firebase, .firebase), (firebase + " ", .firebase), (firebase + "!", nil),
            (String(firebase.prefix(100)), .firebase), (String(firebase.prefix(99)), nil),
            (":" + firebase.filter { $0 != ":" }, nil), (firebase.filter { $0 != ":" } + "Q", nil),
            (base64, .base64), (base64 + "A=", nil), (base64 + "AB==", .base64),
            (base64 + "ABC=", .base64), (base64 + "A===", nil), (base64 + "AB=", nil),
            (base64 + "AB", .base64), (base64 + "A", nil), (base64 + "AB=x", nil),
            (String(base64.dropLast()), nil), (base64 + "????", nil), (base64 + "-_-_", .base64),
            (String(repeating: "ab", count: 24), nil), ("", nil), (" \t", nil), ("hello", nil),
        ] as [(String, ForeignToken?)] {
            #expect(ForeignToken.detect(Array(text.utf8)[...]) == kind, "\(text)")
        }
    }

    @Test(arguments: [
        (
            #"{"a":1,"b":[{"c":2}],"d":{"e":"x","f":{"g":null}},"h":true}"#,
            ["a", "b", "d.e", "d.f.g", "h"]
        ),
        (#"{"a":{},"b":{"c":{}},"d":1}"#, ["d"]),
        (
            #"{"d":{"a":[{"x":{"y":1}}],"b":2},"c":3}"#,
            ["d.a", "d.b", "c"]
        ),
        ("{}", []), ("[1]", []), ("7", []), ("nonsense", []), (#"{"a":1,"#, []),
        (#"{"a":1} x"#, []),
    ])
    func `The keys of a row are named for advice, as paths`(text: String, keys: [String]) {
        #expect(JSONKeys.read(Array(text.utf8).span.bytes) == keys)
    }

    @Test func `Only so many keys are read`() {
        let object = "{" + (0..<150).map { "\"k\($0)\":\($0)" }.joined(separator: ",") + "}"
        #expect(JSONKeys.read(Array(object.utf8).span.bytes) == (0..<100).map { "k\($0)" })
    }
}
