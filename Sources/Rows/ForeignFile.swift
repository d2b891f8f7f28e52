/// A file that is not a list of rows of text, detected by its first bytes.
public enum ForeignFile: Sendable, Equatable, CaseIterable {
    case zip
    case tar
    case excelWorkbook
    case oldExcelWorkbook
    case parquet
    case avro
    case sqlite
    case xz
    case bzip2
    case sevenZip
    case lz4
    case pdf
    case html
    case xml
    /// Statements that fill a table, such as those of `pg_dump` and `mysqldump`.
    case sqlDump
    /// A private key in PEM (RFC 7468), such as a .p8 file.
    case privateKey
    case certificate
    case certificateRequest
    case publicKey
    /// UTF-16 with a byte-order mark.
    case utf16
    /// UTF-32 with a byte-order mark.
    case utf32
    /// UTF-16 without a byte-order mark, little-endian.
    case utf16LittleEndian
    /// UTF-16 without a byte-order mark, big-endian.
    case utf16BigEndian
    case jsonArray
    case jsonDocument

    /// Detects a file that no list reader can read; nil if nothing indicates such a file.
    ///
    /// - Parameters:
    ///   - bytes: Beginning of the file, decompressed, with at least its first line if possible.
    ///   - isDelimited: Whether the file is declared as CSV or TSV, whose first row may begin with
    ///     any character.
    public static func detect(_ bytes: [UInt8], isDelimited: Bool) -> ForeignFile? {
        for (mark, kind) in marks where bytes.starts(with: mark) {
            return kind == .zip && isWorkbook(bytes) ? .excelWorkbook : kind
        }
        if isTar(bytes) { return .tar }
        if let unmarked = unmarkedUTF16(bytes) { return unmarked }
        if isSQLDump(bytes) { return .sqlDump }
        if let kind = pem(bytes, isDelimited: isDelimited) { return kind }
        if let markup = markup(bytes) { return markup }
        if isDelimited { return nil }
        var text = bytes[...]
        if text.starts(with: ListFormat.byteOrderMark) { text = text.dropFirst(3) }
        text = text.drop { $0 <= 0x20 }
        if text.first == UInt8(ascii: "[") {
            // A line of a log may begin with a time in brackets.
            let element = text.dropFirst().first { $0 > 0x20 }
            return element.map(Array("{[]\"".utf8).contains) ?? true ? .jsonArray : nil
        }
        guard text.first == UInt8(ascii: "{") else { return nil }
        // An object that spans lines is not JSON Lines. If the next line begins another object, the
        // list is JSON Lines with a broken row.
        let line = text.prefix { $0 != UInt8(ascii: "\n") }.filter { $0 > 0x20 }
        guard line == [UInt8(ascii: "{")] else { return nil }
        let next = text.dropFirst().first { $0 > 0x20 }
        return next == UInt8(ascii: "{") ? nil : .jsonDocument
    }

    /// Detects HTML and XML by their first tag. A device token may be in angle brackets, too.
    private static func markup(_ bytes: [UInt8]) -> ForeignFile? {
        let mark = ListFormat.byteOrderMark
        let text = bytes.dropFirst(bytes.starts(with: mark) ? mark.count : 0).drop { $0 <= 0x20 }
        let start = String(decoding: text.prefix(markupByteCount), as: UTF8.self).lowercased()
        guard start.hasPrefix("<") else { return nil }
        if start.hasPrefix("<html") || start.hasPrefix("<!doctype html") { return .html }
        if start.hasPrefix("<?xml") { return start.contains("<html") ? .html : .xml }
        return ["<!doctype ", "<plist", "<error>"].contains(where: start.hasPrefix) ? .xml : nil
    }

    private static let markupByteCount = 1_024

    /// Detects a key or a certificate in PEM by the line before its first block. Other text may come
    /// before that line, but no device token may: such a file is a list with a line too much.
    private static func pem(_ bytes: [UInt8], isDelimited: Bool) -> ForeignFile? {
        let mark = ListFormat.byteOrderMark
        let text = bytes.dropFirst(bytes.starts(with: mark) ? mark.count : 0).drop { $0 <= 0x20 }
        // A column of a table may contain certificates.
        let lines = text.split(separator: UInt8(ascii: "\n"), maxSplits: isDelimited ? 1 : pemLines)
        for line in lines.prefix(isDelimited ? 1 : pemLines) {
            var line = line
            while let last = line.last, last <= 0x20 { line.removeLast() }
            if ForeignToken.isLongToken(line) { return nil }
            guard line.starts(with: "-----BEGIN ".utf8) else { continue }
            let label = String(decoding: line.dropFirst(11), as: UTF8.self)
            if let found = pemLabels.first(where: { label.hasSuffix($0.0) }) { return found.1 }
        }
        return nil
    }

    /// Number of lines within which the first block in PEM begins. The text of a certificate, as
    /// OpenSSL writes it before the block, is shorter.
    private static let pemLines = 1_000

    private static let pemLabels: [(String, ForeignFile)] = [
        ("PRIVATE KEY-----", .privateKey), ("CERTIFICATE REQUEST-----", .certificateRequest),
        ("CERTIFICATE-----", .certificate), ("PUBLIC KEY-----", .publicKey),
    ]

    /// Error code in the XML response of a storage service, such as `NoSuchKey` of Amazon S3; nil if
    /// the file is no such response.
    public static func storageError(_ bytes: [UInt8]) -> String? {
        let text = String(decoding: bytes.prefix(markupByteCount), as: UTF8.self)
        guard markup(bytes) == .xml, text.contains("<Error>"),
            let start = text.firstRange(of: "<Code>"),
            let end = text[start.upperBound...].firstRange(of: "</Code>")
        else { return nil }
        let code = text[start.upperBound..<end.lowerBound]
        return !code.isEmpty && code.allSatisfy { $0.isASCII && $0.isLetter } ? String(code) : nil
    }

    private static let marks: [([UInt8], ForeignFile)] = [
        (Array("PK\u{3}\u{4}".utf8), .zip), (Array("PK\u{5}\u{6}".utf8), .zip),
        ([0xd0, 0xcf, 0x11, 0xe0, 0xa1, 0xb1, 0x1a, 0xe1], .oldExcelWorkbook),
        (Array("PAR1".utf8), .parquet),
        (Array("Obj\u{1}".utf8), .avro), (Array("SQLite format 3\u{0}".utf8), .sqlite),
        ([0xfd, 0x37, 0x7a, 0x58, 0x5a, 0x00], .xz), (Array("BZh".utf8), .bzip2),
        ([0x37, 0x7a, 0xbc, 0xaf, 0x27, 0x1c], .sevenZip), ([0x04, 0x22, 0x4d, 0x18], .lz4),
        (Array("%PDF-".utf8), .pdf),
        // UTF-32 first, because its mark begins with that of UTF-16.
        ([0xff, 0xfe, 0, 0], .utf32), ([0, 0, 0xfe, 0xff], .utf32),
        ([0xff, 0xfe], .utf16), ([0xfe, 0xff], .utf16),
    ]

    private static func isWorkbook(_ bytes: [UInt8]) -> Bool {
        let text = String(decoding: bytes, as: UTF8.self)
        return text.contains("[Content_Types].xml") || text.contains("xl/")
    }

    /// Detects UTF-16 without a mark: text in which every second byte is 0, as it is for ASCII
    /// characters.
    private static func unmarkedUTF16(_ bytes: [UInt8]) -> ForeignFile? {
        let pairs = min(bytes.count, 64) / 2
        guard pairs >= 2 else { return nil }
        func isText(low: Int, high: Int) -> Bool {
            (0..<pairs).allSatisfy { bytes[2 * $0 + high] == 0 && bytes[2 * $0 + low] != 0 }
        }
        if isText(low: 0, high: 1) { return .utf16LittleEndian }
        return isText(low: 1, high: 0) ? .utf16BigEndian : nil
    }

    /// Whether the first line other than a comment is an SQL statement, and a statement that adds
    /// rows follows.
    private static func isSQLDump(_ bytes: [UInt8]) -> Bool {
        let lines = bytes.split(separator: UInt8(ascii: "\n")).prefix(dumpLines)
            .map { String(decoding: $0.prefix(256), as: UTF8.self).uppercased() }
        let statements = lines.filter { line in
            !line.allSatisfy(\.isWhitespace) && !["--", "/*", "\\"].contains(where: line.hasPrefix)
        }
        guard let first = statements.first,
            ["SET ", "COPY ", "INSERT ", "CREATE ", "DROP ", "BEGIN", "USE ", "LOCK ", "PRAGMA "]
                .contains(where: first.hasPrefix)
        else { return false }
        return statements.contains { line in
            line.hasPrefix("INSERT INTO ")
                || line.hasPrefix("COPY ") && line.contains(" FROM STDIN")
        }
    }

    /// Number of lines in which a dump adds its first rows. Before them, it creates a table.
    private static let dumpLines = 1_000

    /// Whether the bytes begin with a tar header: 512 bytes that contain their own checksum
    /// (POSIX.1-2017, pax, "ustar Interchange Format"). The oldest archives have no other mark.
    private static func isTar(_ bytes: [UInt8]) -> Bool {
        let (headerCount, sumRange) = (512, 148..<156)
        guard bytes.count >= headerCount, bytes[0] != 0 else { return false }
        var written = 0
        for byte in bytes[sumRange] {
            if (0x30...0x37).contains(byte) {
                written = written * 8 + Int(byte - 0x30)
            } else if byte != 0x20, byte != 0 {
                return false
            }
        }
        // The bytes of the checksum field count as blanks.
        let sum = bytes[..<headerCount].enumerated().reduce(0) { sum, next in
            sum + (sumRange.contains(next.offset) ? 0x20 : Int(next.element))
        }
        return sum == written
    }

    /// Name of this kind of file, with an article, for messages.
    public var name: String {
        switch self {
        case .zip: "a zip archive"
        case .tar: "a tar archive"
        case .excelWorkbook: "an Excel workbook (xlsx)"
        case .oldExcelWorkbook: "an Excel workbook (xls)"
        case .parquet: "a Parquet file"
        case .avro: "an Avro file"
        case .sqlite: "an SQLite database"
        case .xz: "compressed with xz"
        case .bzip2: "compressed with bzip2"
        case .sevenZip: "a 7z archive"
        case .lz4: "compressed with lz4"
        case .pdf: "a PDF document"
        case .html: "an HTML page"
        case .xml: "an XML document"
        case .sqlDump: "an SQL dump"
        case .privateKey: "a private key (PEM)"
        case .certificate: "a certificate (PEM)"
        case .certificateRequest: "a certificate request (PEM)"
        case .publicKey: "a public key (PEM)"
        case .utf16: "UTF-16 text"
        case .utf32: "UTF-32 text"
        case .utf16LittleEndian: "UTF-16 text (little-endian, without a byte-order mark)"
        case .utf16BigEndian: "UTF-16 text (big-endian, without a byte-order mark)"
        case .jsonArray: "a JSON array, not JSON Lines"
        case .jsonDocument: "a JSON document over several lines, not JSON Lines"
        }
    }

    /// Advice on converting the file to a list. A command comes last.
    public func remedy(_ command: ListCommand) -> String {
        let direct = "gzip and zstd files are read as they are"
        func decompress(_ program: String) -> String {
            "\(direct); decompress it, such as \(command.filter("\(program) -dc"))"
        }
        return switch self {
        case .zip:
            command.extractZip.map {
                "extract it and name one of its files, such as \($0)"
            }
                ?? "decompress it, as unzip does: \(direct)"
        case .tar:
            "extract it and name one of its files, such as \(command.extractTar)"
        case .excelWorkbook, .oldExcelWorkbook: "save the sheet as CSV (UTF-8)"
        case .parquet: "write it as CSV, as duckdb -c \"COPY (FROM 'x.parquet') TO 'x.csv'\" does"
        case .avro: "write it as CSV or JSON Lines"
        case .sqlite: "write its table as CSV, as sqlite3 -csv -header does"
        case .xz: decompress("xz")
        case .bzip2: decompress("bzip2")
        case .sevenZip: "decompress it: \(direct)"
        case .lz4: decompress("lz4")
        case .pdf, .privateKey, .certificate, .certificateRequest, .publicKey:
            "name a list of tokens"
        case .html: "is it a login or error page? Download the list again"
        case .xml: "write its device tokens as CSV, or one per line"
        case .sqlDump: "let the database write the list as CSV, as psql --csv does"
        case .utf16: "write it as UTF-8, such as \(command.filter("iconv -f UTF-16 -t UTF-8"))"
        case .utf32: "write it as UTF-8, such as \(command.filter("iconv -f UTF-32 -t UTF-8"))"
        case .utf16LittleEndian:
            "write it as UTF-8, such as \(command.filter("iconv -f UTF-16LE -t UTF-8"))"
        case .utf16BigEndian:
            "write it as UTF-8, such as \(command.filter("iconv -f UTF-16BE -t UTF-8"))"
        case .jsonArray, .jsonDocument:
            "write each row as an object on a line of its own, as jq -c does"
        }
    }
}
