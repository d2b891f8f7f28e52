import Testing

@testable import BroadsideRows

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
        ("{\n  \"token\"", .jsonDocument), (" \t{ \r\n", .jsonDocument),
        ("{\n{\"token\": 1}\n", nil), ("{", .jsonDocument),
        ("{\"token\":\"a\"}\n", nil), ("{ \"token\":1}\n{", nil), ("a[", nil),
        ("[ \n\"ab\"]", .jsonArray), ("[2026/11/01 - 10:00:00] |success| ab\n", nil),
        ("-- PostgreSQL dump\n\nSET x = 0;\n\nCOPY d (token) FROM stdin;\nab\n", .sqlDump),
        ("copy d (token) from stdin with csv;\n", .sqlDump),
        ("/*!40101 SET x */;\nDROP TABLE d;\nINSERT INTO `d` VALUES (1,'ab');\n", .sqlDump),
        ("INSERT INTO d VALUES ('ab');\n", .sqlDump), ("token\nINSERT INTO d\n", nil),
        ("-----BEGIN PRIVATE KEY-----\nMIGH\n-----END PRIVATE KEY-----\n", .privateKey),
        ("\u{feff}\n-----BEGIN EC PRIVATE KEY-----\r\nMHcC\r\n", .privateKey),
        ("-----BEGIN CERTIFICATE-----\nMIIC\n", .certificate),
        ("-----BEGIN CERTIFICATE REQUEST-----\nMIIC", .certificateRequest),
        ("-----BEGIN PUBLIC KEY-----\n", .publicKey),
        ("-----BEGIN TOKENS-----\nab\n", nil), ("-----BEGIN CERTIFICATE\nab\n", nil),
        ("SET,token\n1,ab\n", nil), ("USE THIS,token\n1,ab\n", nil), ("-- ab\nab\n", nil),
    ]

    @Test(arguments: files.indices)
    func `A file that is not a list is recognized`(index: Int) {
        let (text, kind) = Self.files[index]
        #expect(ForeignFile.detect(Array(text.utf8), isDelimited: false) == kind, "\(text)")
        // The first row of a table may begin with a bracket.
        let isJSON = kind == .jsonArray || kind == .jsonDocument
        #expect(
            ForeignFile.detect(Array(text.utf8), isDelimited: true) == (isJSON ? nil : kind))
    }

    @Test(
        arguments: [
            ("<?xml version=\"1.0\"?>\n<a/>", .xml), ("<!DOCTYPE plist PUBLIC", .xml),
            ("<Error><Code>NoSuchKey</Code></Error>", .xml), ("<!DOCTYPE html>", .html),
            ("\u{feff}\n<HTML lang=\"en\">", .html), ("<?xml version=\"1.0\"?><html>", .html),
            ("<c60f415d a240c4f4>\n", nil), ("<error,token\n", nil), ("<\n", nil),
        ] as [(String, ForeignFile?)])
    func `A document with tags is recognized, but not a token in angle brackets`(
        text: String, kind: ForeignFile?
    ) {
        for isDelimited in [false, true] {
            #expect(ForeignFile.detect(Array(text.utf8), isDelimited: isDelimited) == kind)
        }
        let code = text.contains("NoSuchKey") ? "NoSuchKey" : nil
        #expect(ForeignFile.storageError(Array(text.utf8)) == code)
    }

    @Test func `A key after other text is recognized, but not one after a device token`() {
        let key = "-----BEGIN PRIVATE KEY-----\nMIGH\n"
        func kind(_ text: String, isDelimited: Bool = false) -> ForeignFile? {
            ForeignFile.detect(Array(text.utf8), isDelimited: isDelimited)
        }
        #expect(kind("Bag Attributes: <No Attributes>\n\n\(key)") == .privateKey)
        let token = String(repeating: "c6", count: 32)
        #expect(kind("\(token)\n\(key)") == nil)
        // A multi-line field of a table.
        #expect(kind("token,key\n\(token),\"\n\(key)\"\n", isDelimited: true) == nil)
    }

    @Test func `What a row has is named without another word for rows`() {
        #expect(ForeignToken.several.content == "several device tokens")
        #expect(ForeignToken.expo.content == ForeignToken.expo.name)
    }

    @Test func `A description of NSData is found in a row without quotes`() {
        for (row, kind) in [
            ("0,{length = 8, bytes = 0xc60f415da240c4f4},DE", .dataDescription),
            ("0,{length = 32, bytes = 0xc60f415d ... a240c4f4 },DE", .shortenedDescription),
            ("0,{length = 8,DE", nil), ("0,{x},DE", nil), ("", nil),
        ] as [(String, ForeignToken?)] {
            #expect(ForeignToken.description(in: Array(row.utf8)) == kind, "\(row)")
        }
    }

    @Test func `Binary files and UTF-16 are recognized`() {
        for (bytes, kind) in [
            ([0xd0, 0xcf, 0x11, 0xe0, 0xa1, 0xb1, 0x1a, 0xe1, 0], .oldExcelWorkbook),
            ([0xd0, 0xcf, 0x11, 0xe0, 0xa1, 0xb1, 0x1a], nil),
            ([0xfd, 0x37, 0x7a, 0x58, 0x5a, 0x00], .xz),
            ([0x37, 0x7a, 0xbc, 0xaf, 0x27, 0x1c], .sevenZip), ([0x04, 0x22, 0x4d, 0x18], .lz4),
            ([0xff, 0xfe, 0x61, 0], .utf16), ([0xfe, 0xff, 0, 0x61], .utf16),
            ([0xff, 0xfe, 0, 0, 0x61, 0, 0, 0], .utf32), ([0, 0, 0xfe, 0xff], .utf32),
            ([0x61, 0, 0x62, 0], .utf16LittleEndian), ([0, 0x61, 0, 0x62], .utf16BigEndian),
            ([0x61, 0], nil),
            ([0x61, 0, 0x62, 1], nil), ([0, 0, 0, 0], nil), ([0x61, 0, 0, 0x62], nil),
            ([0x61, 0, 0x62, 0, 0x63], .utf16LittleEndian),
        ] as [([UInt8], ForeignFile?)] {
            #expect(ForeignFile.detect(bytes, isDelimited: false) == kind, "\(bytes)")
            #expect(ForeignFile.detect(bytes, isDelimited: true) == kind)
        }
        // A zero behind the first 64 bytes decides nothing.
        let long = (0..<63).flatMap { _ in [0x61, 0] as [UInt8] }
        #expect(
            ForeignFile.detect(Array(long.prefix(64)) + [0x61, 0x61], isDelimited: false)
                == .utf16LittleEndian)
        #expect(
            ForeignFile.detect(Array(long.prefix(62)) + [0x61, 0x61], isDelimited: false) == nil)
    }

    @Test func `Each kind of foreign file has a name and a remedy`() {
        let names = Set(ForeignFile.allCases.map(\.name))
        #expect(names.count == ForeignFile.allCases.count)
        let command = ListCommand(file: "my list")
        for kind in ForeignFile.allCases { #expect(!kind.remedy(command).isEmpty) }
        for kind in [ForeignFile.zip, .tar, .xz, .bzip2, .lz4, .utf16, .utf16BigEndian] {
            #expect(kind.remedy(command).contains("'my list'"))
        }
        #expect(Set(ForeignToken.allCases.map(\.name)).count == ForeignToken.allCases.count)
        for kind in ForeignToken.allCases {
            let remedy = kind.remedy(command, isColumn: false)
            let hasNone: [ForeignToken] = [
                .otherBase64, .firebase, .expo, .shortenedDescription, .uuid, .roundedNumber,
                .tableRow, .array,
            ]
            #expect(remedy.contains(", such as ") == !hasNone.contains(kind))
            #expect(remedy.contains("< 'my list' > 'my list.fixed.txt'") == !hasNone.contains(kind))
            #expect(kind.hasCommand(isColumn: false) == !hasNone.contains(kind))
            // A command for whole lines would change other columns.
            #expect(!kind.remedy(command, isColumn: true).contains("my list"))
            #expect(!kind.hasCommand(isColumn: true))
        }
    }

    @Test func `A text that is not a token is recognized as what people call it`() {
        let token = String(repeating: "0a1B", count: 16)
        let base64 = "q8xQ+/3m" + String(repeating: "Ab1z", count: 8)
        let pairs = Array(repeating: "aB", count: 32)
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
            ("ios:\(token)", .labeled), ("apns:\(token)\(token.prefix(32))", .labeled),
            ("my-app_1:\(String(repeating: token, count: 3))", .labeled),
            (":\(token)", nil), ("ios:\(token)0", nil), ("a b:\(token)", nil),
            (base64, .otherBase64), (base64 + "A=", nil), (base64 + "AB==", .otherBase64),
            (base64 + "ABC=", .base64), (base64 + "A===", nil), (base64 + "AB=", nil),
            (base64 + "AB", .otherBase64), (base64 + "A", nil), (base64 + "AB=x", nil),
            (base64 + "ABC", .base64), (base64 + "-_-", .base64), (base64 + "ABCD", .otherBase64),
            (String(base64.dropLast()), nil), (base64 + "????", nil),
            (base64 + "-_-_", .otherBase64),
            (pairs.joined(separator: "-"), .hyphenated), (pairs.joined(separator: ":"), .spaced),
            (pairs.joined(separator: " "), .spaced), (pairs.joined(separator: "--"), nil),
            (pairs.prefix(15).joined(separator: "-"), nil),
            (pairs.prefix(16).joined(separator: "-"), .hyphenated),
            (pairs.joined(separator: "-") + "-a", nil), (pairs.joined(separator: "_"), nil),
            ("“\(token)”", .quoted), ("`\(token)`", .quoted), ("“oops”", nil),
            ("\\x\(token)", .backslashed), ("\\\\x\(token)", .backslashed),
            ("\\xoops", nil), ("x\(token)", nil),
            ("b'\(token)'", .bytesLiteral), ("b\"\(token)\"", .bytesLiteral), ("b'\(token)\"", nil),
            ("b'\\xc6\\x0f'", .escapedBytes), ("b'oops'", nil), ("b''", nil),
            ("{length = 8, bytes = 0xc60f415da240c4f4}", .dataDescription),
            ("{length = 8, bytes = 0xc60f415d a240c4f4 }", .dataDescription),
            ("{length = 32, bytes = 0xc60f415d ... a240c4f4 }", .shortenedDescription),
            ("{\(token)}", .array), ("{\(token),\(token)}", .array),
            ("[\"\(token)\", \"\(token)\"]", .array), ("['\(token)', '\(token)']", .array),
            ("{\(token),oops}", nil), ("{}", nil), ("{\(token)]", nil),
            ("\(token)\n\(token)", .several),
            ("{length = 32, bytes = 0xoops }", nil), ("{length = 32", nil),
            ("%3C\(token)%3E", .percentEncoded), ("%3c\(token)%3e", .percentEncoded),
            ("%22\(token)%22", .percentEncoded), ("%41\(token)", nil), ("%3C", nil),
            ("\(token),\(token)", .several), ("\(token) | \(token)", .several),
            ("\"\(token)\", \"\(token)\"", .several), ("\(token),oops", nil),
            ("\u{a0}\(token)", .invisible),
            ("\(token.prefix(8))\u{200b}\(token.dropFirst(8))", .invisible),
            ("\u{feff}\(token)\u{2060}", .invisible), ("é\(token)", nil),
            ("=\"\(token)\"", .spreadsheetText), ("'\(token)", .spreadsheetText),
            ("=\"oops\"", nil), ("=\(token)", nil), ("'oops", nil),
            ("5.91241E+76", .roundedNumber), ("5,91241E+76\r", .roundedNumber),
            ("5e+7", .roundedNumber), ("5.9.1E+76", nil), ("5.E+76", nil), ("5E+7654", nil),
            ("5E+", nil), ("aE+76", nil), ("E+76", nil), ("5.91241E-76", nil),
            ("Optional(\"\(token)\")", .optional), ("Optional(\(token))", .optional),
            ("Optional(32 bytes)", nil), ("Optional(\"\(token)\"", nil),
            ("\(token) | FR", .tableRow), ("| \(token) | FR |", .tableRow),
            ("FR|\(token)", .tableRow), ("| \(token) |", .tableRow), ("a | b", nil),
            ("-----+-----", .tableRow), ("+-----+", .tableRow), ("|---|---|", .tableRow),
            ("-----", nil), ("||", nil), ("++", nil),
            (String(repeating: "ab", count: 24), nil), ("", nil), (" \t", nil), ("hello", nil),
        ] as [(String, ForeignToken?)] {
            #expect(ForeignToken.detect(Array(text.utf8)[...]) == kind, "\(text)")
        }
    }

    @Test func `A tar archive is recognized by its header's checksum`() {
        var header = [UInt8](repeating: 0, count: 512)
        header.replaceSubrange(0..<5, with: "a.csv".utf8)
        header.replaceSubrange(148..<156, with: "        ".utf8)
        let sum = header.reduce(0) { $0 + Int($1) }
        header.replaceSubrange(148..<155, with: "\(String(sum, radix: 8))\0      ".utf8.prefix(7))
        for isDelimited in [false, true] {
            #expect(ForeignFile.detect(header, isDelimited: isDelimited) == .tar)
            #expect(ForeignFile.detect(Array(header.prefix(511)), isDelimited: isDelimited) == nil)
        }
        header[300] ^= 1
        #expect(ForeignFile.detect(header, isDelimited: false) == nil)
        #expect(ForeignFile.detect([UInt8](repeating: 0, count: 512), isDelimited: true) == nil)
    }

    @Test(
        arguments: [
            (#"[{"a":1,"deviceToken":"x"}]"#, rows([], tokenKey: "deviceToken")),
            ("\u{feff} [\n{\"a\":\"x\"}]", rows([])), (#"["a"]"#, texts([])),
            ("[1]", .other), ("[[", .other), ("", nil), ("a", nil), ("{", .other),
            (#"{"results":[{"x":"a"}"#, rows(["results"])),
            (#"{"n":1,"s":"a","ok":true,"a b":["x"]}"#, texts(["a b"])),
            (#"{"d":{"r":[{"pushToken":"x"}"#, rows(["d", "r"], tokenKey: "pushToken")),
            (#"{"a":1,"b":"c"}"#, .other), (#"{"a\"":["x"]}"#, .other),
            (#"{"it's":["x"]}"#, .other),
            (#"{"a":1,"TOKEN":["x"]}"#, .tokenKeys(isNested: true)),
            (#"{"TOKEN":1}"#, .tokenKeys(isNested: false)), (#"{"ad":1}"#, .other),
            (#"{"n":1,"tokens":{"TOKEN":true}}"#, .tokenKeys(isNested: true)),
            (#"{"u":{"u1":{"n":"a","t":{"TOKEN":{"os":"x"}}}}}"#, .tokenKeys(isNested: true)),
            (#"{"u":1,"t":{"TOKEN":1}}\#n{}"#, .tokenKeys(isNested: true)),
            (#"{"d":[{"t":"TOKEN","old":{"TOKEN":1}}]}"#, rows(["d"], tokenKey: "t")),
            // The device tokens show which array has the rows.
            (#"{"s":["read"],"d":[{"t":"TOKEN"}]}"#, rows(["d"], tokenKey: "t")),
            (#"{"ids":[1,2],"d":[{"a":{"t":"TOKEN"}}]}"#, rows(["d"], tokenKey: "a.t")),
            (#"{"d":[{"t":"TOKEN"}],"next_token":"TOKEN"}"#, rows(["d"], tokenKey: "t")),
            // The keys of the rows are IDs.
            (
                #"{"-Nx0":{"n":"a","token":"TOKEN"},"-Nx1":{"token":"TOKEN"}}"#,
                rows([], isKeyed: true, tokenKey: "token")
            ),
            (
                #"{"users":{"u0":{"t":"TOKEN"},"u1":{"t":"TOKEN"}}}"#,
                rows(["users"], isKeyed: true, tokenKey: "t")
            ),
            (
                #"{"u":1,"d":{"d1":{"t":"TOKEN"},"d2":{"t":"TOKEN"}}}\#n{}"#,
                rows(["d"], isKeyed: true, tokenKey: "t")
            ),
            (#"{"u0":{"d":{"k1":"TOKEN"}},"u1":{"d":{"k2":"TOKEN"}}}"#, rows([], isKeyed: true)),
            (
                #"{"u0":{"d":{"k1":{"t":"TOKEN"}}},"u1":{"d":{"k2":{"t":"TOKEN"}}}}"#,
                rows([], isKeyed: true)
            ),
            (#"{"t":{"u0":"TOKEN","u1":"TOKEN"}}"#, texts(["t"], isKeyed: true)),
            // An object on each line is a row, whose keys are columns.
            (#"{"a":{"t":"TOKEN"},"b":{"t":"TOKEN"}}\#n{}"#, .other),
            (#"{"a":"TOKEN","b":"TOKEN","tags":["x"]}\#n{}"#, .other),
            (#"{"a":"TOKEN","tags":["x"]}\#n{}"#, .other),
            (#"{"x":{"token":"TOKEN"},"old":["TOKEN"]}\#n{}"#, .other),
            // Rows that are arrays.
            (#"["TOKEN",1234]\#n["TOKEN",1235]"#, texts([], elements: "[0]")),
            (#"["TOKEN"]\#n["TOKEN","TOKEN"]"#, texts([])),
            (#"[["a","TOKEN"],["b","TOKEN"]]"#, texts([], elements: "[][1]")),
            (#"[["TOKEN"],["TOKEN","TOKEN"]]"#, texts([], elements: "[][]")),
            (#"{"t":["TOKEN","x"]}\#n{}"#, texts(["t"])), ("[[[\"TOKEN\"]]]", .other),
        ] as [(String, ForeignJSON?)])
    func `Rows in a JSON document are found`(text: String, kind: ForeignJSON?) {
        let token = String(repeating: "aB", count: 32)
        let bytes = text.split(separator: "TOKEN", omittingEmptySubsequences: false)
            .joined(separator: token).utf8
        #expect(ForeignJSON.detect(Array(bytes)) == kind, "\(text)")
    }

    private static func rows(
        _ path: [String], isKeyed: Bool = false, tokenKey: String? = nil
    ) -> ForeignJSON { .rows(path: path, isKeyed: isKeyed, tokenKey: tokenKey) }

    private static func texts(
        _ path: [String], isKeyed: Bool = false, elements: String = "[]"
    ) -> ForeignJSON { .texts(path: path, isKeyed: isKeyed, elements: elements) }

    @Test(
        arguments: [
            ("Title\ntoken\n", 2), ("Title\n\nid;Token\n", 3), ("a,b\nx\ttoken\r\n", 2),
            ("token\nx\ntoken\n", nil), ("id,token\n", nil), ("Title\nrows\n", nil), ("", nil),
            ("1,\(String(repeating: "ab", count: 32))\nid,token\n", nil),
            ("\u{feff}Title\n\"token\",\"x\"\n", 2),
        ] as [(String, Int?)])
    func `A header below other lines is found`(text: String, line: Int?) {
        #expect(TitleLines.headerLine(Array(text.utf8), tokenColumn: "token") == line, "\(text)")
    }

    @Test(
        arguments: [
            ("Table 1\nid,device\n1,TOKEN\n", 2, "id device"),
            ("A\n\nid;device\n1;TOKEN\n2;TOKEN\n", 3, "id device"),
            ("Table 1\ndevice\nTOKEN\n", 2, "device"), ("id,device\n1,TOKEN\n", nil, ""),
            ("Table 1\nid,device,x\n1,TOKEN\n", nil, ""), ("Table 1\n,,\n1,TOKEN,\n", nil, ""),
            ("TOKEN\nid,device\n1,TOKEN\n", nil, ""), ("a\nb\nc\n", nil, ""), ("", nil, ""),
        ] as [(String, Int?, String)])
    func `A likely header is the line above the first row, with as many fields`(
        text: String, line: Int?, columns: String
    ) {
        let token = String(repeating: "0a1B", count: 16)
        let bytes = text.split(separator: "TOKEN", omittingEmptySubsequences: false)
            .joined(separator: token).utf8
        let found = TitleLines.likelyHeader(Array(bytes))
        #expect(found?.line == line, "\(text)")
        #expect(found?.columns.joined(separator: " ") ?? "" == columns)
    }

    @Test(arguments: [
        ("{\"a\":[1]}\n{\"a\":[2]}\n", true), ("{\"a\":\"}\\\"{\"}\r\n\n[1]", true),
        ("\u{feff}{}\n{", true), ("{\"a\":[\n1]}\n{}", false), ("{\"a\":[1]}\n", false),
        ("{}\nx", false), ("", false),
    ])
    func `A document on each line is told from one document`(text: String, isOnePerLine: Bool) {
        #expect(ForeignJSON.isOnePerLine(Array(text.utf8)) == isOnePerLine, "\(text)")
    }

    @Test(arguments: [
        ("{\"a\":1}{\"a\":2}", true), ("{\"a\":{}} {\"a\":{}}\n", true), ("\u{feff}{}{", true),
        ("{\"a\":\"}{\"}\n{}", false), ("{\"a\":{}}\n{\"a\":{}}", false), ("[{}]{}", false),
        ("{\"a\":[{},{}]}", false), ("{\"a\":1", false), ("{\"a\":1},{}", false), ("", false),
    ])
    func `Several objects on the first line are told from one on each line`(
        text: String, areOnOne: Bool
    ) {
        #expect(ForeignJSON.areObjectsOnOneLine(Array(text.utf8)) == areOnOne, "\(text)")
    }

    @Test func `The printed program reads one document or one on each line`() {
        let command = ListCommand(file: "x.json")
        for (json, whole, eachLine) in [
            (
                Self.rows(["a", "b"]), #"for r in json.load(open(0,"rb"))["a"]["b"]]'"#,
                #"for d1 in [d0.get("a") or {}] for r in (d1.get("b") or []) if r]' < x.json"#
            ),
            (
                Self.rows(["a"], isKeyed: true), #"json.load(open(0,"rb"))["a"].values()]'"#,
                #"for d0 in [json.loads(l)] for r in (d0.get("a") or {}).values() if r]'"#
            ),
            (Self.rows([]), #"for r in json.load(open(0,"rb"))]'"#, "for r in json.loads(l)]'"),
            (Self.texts(["a"]), #"jq -r '.["a"][]' < x.json > x.fixed.txt"#, #"'.["a"][]?'"#),
            (Self.texts([], elements: "[0]"), "jq -r '.[0]'", "jq -r '.[0]?'"),
        ] {
            let one = json.remedy(command, tokenColumn: "token")
            #expect(one.contains(whole), "\(one)")
            let many = json.remedy(command, tokenColumn: "token", isOnePerLine: true)
            #expect(many.contains(eachLine), "\(many)")
        }
    }

    @Test func `Printed commands read the file unchanged and write another one`() {
        for (file, compression, command) in [
            ("a.csv", nil, "x < a.csv > a.fixed.csv"), ("-", nil, "... | x > list.fixed.txt"),
            ("", .gzip, "... | gzip -dc | x > list.fixed.txt"),
            ("/d/a b.csv.gz", .gzip, "gzip -dc < '/d/a b.csv.gz' | x > 'a b.fixed.csv'"),
            ("a.zst", .zstd, "zstd -dc < a.zst | x > a.fixed.txt"),
            ("it's", nil, "x < 'it'\\''s' > 'it'\\''s.fixed.txt'"),
            ("a\nb.txt", nil, "x < FILE > list.fixed.txt"), (".x", nil, "x < .x > .x.fixed.txt"),
            ("a.csv.xz", nil, "x < a.csv.xz > a.fixed.csv"),
        ] as [(String, ListCompression?, String)] {
            #expect(ListCommand(file: file, compression: compression).filter("x") == command)
        }
        #expect(
            ListCommand(file: "a.json").filter("x", to: "jsonl") == "x < a.json > a.fixed.jsonl")
        #expect(ListCommand(file: "-").extractZip == nil)
        #expect(ListCommand(file: "a[1].zip").extractZip == nil)
        #expect(ListCommand(file: "-a.zip").extractZip == "unzip -d lists ./-a.zip")
    }

    @Test(
        arguments: [
            ("sep=;", ";"), ("SEP=,\r", ","), ("\"sep=;\"\r\n", ";"), ("sep=\t", "\t"),
            ("sep=; ", ";"),
            ("sep=", nil), ("sep=;;", nil), ("xsep=;", nil), ("sep;;", nil), ("", nil),
            ("sep=;              token", nil),
        ] as [(String, Character?)])
    func `A first line sep= names the separator`(line: String, separator: Character?) {
        let found = SeparatorLine.separator(Array(line.utf8))
        #expect(found == separator?.asciiValue, "\(line)")
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
    func `The keys of a row are named as paths`(text: String, keys: [String]) {
        #expect(JSONKeys.read(Array(text.utf8).span.bytes) == keys)
    }

    @Test func `Keys inside objects whose path has a key with a dot can't be named`() {
        let row = Array(#"{"a.b":1,"c":{"d.e":2,"f":3},"g.h":{"i":4}}"#.utf8)
        #expect(JSONKeys.read(row.span.bytes) == ["a.b", "c.f"])
        #expect(JSONKeys.read(row.span.bytes, isNameable: false) == ["c.d.e", "g.h.i"])
    }

    @Test func `The keys whose values are null are named`() {
        let row = #"{"a":null,"b":{"c":null,"d":1},"e":"null","f":[null]}"#
        #expect(JSONKeys.read(Array(row.utf8).span.bytes, isNull: true) == ["a", "b.c"])
    }

    @Test func `The number of keys that are read has a limit`() {
        let object = "{" + (0..<150).map { "\"k\($0)\":\($0)" }.joined(separator: ",") + "}"
        #expect(JSONKeys.read(Array(object.utf8).span.bytes) == (0..<100).map { "k\($0)" })
    }
}
