/// A file that is not a list of rows of text, known by its first bytes.
public enum ForeignFile: Sendable, Equatable, CaseIterable {
    case zip
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
    case utf16
    case jsonArray
    case jsonDocument

    /// What a file is that no reader of lists can read.
    ///
    /// - Parameters:
    ///   - bytes: its beginning, at least its first line if possible; a compressed file's decoded.
    ///   - isDelimited: whether it is said to be CSV or TSV, whose first row may begin with any
    ///     character.
    public static func detect(_ bytes: [UInt8], isDelimited: Bool) -> ForeignFile? {
        for (mark, kind) in marks where bytes.starts(with: mark) {
            return kind == .zip && isWorkbook(bytes) ? .excelWorkbook : kind
        }
        if isUTF16(bytes) { return .utf16 }
        if isDelimited { return nil }
        var text = bytes[...]
        if text.starts(with: ListFormat.byteOrderMark) { text = text.dropFirst(3) }
        text = text.drop { $0 <= 0x20 }
        if text.first == UInt8(ascii: "[") { return .jsonArray }
        guard text.first == UInt8(ascii: "{") else { return nil }
        // An object that does not end on its line is not one of JSON Lines.
        let line = text.prefix { $0 != UInt8(ascii: "\n") }.filter { $0 > 0x20 }
        return line == [UInt8(ascii: "{")] ? .jsonDocument : nil
    }

    private static let marks: [([UInt8], ForeignFile)] = [
        (Array("PK\u{3}\u{4}".utf8), .zip), (Array("PK\u{5}\u{6}".utf8), .zip),
        ([0xd0, 0xcf, 0x11, 0xe0, 0xa1, 0xb1, 0x1a, 0xe1], .oldExcelWorkbook),
        (Array("PAR1".utf8), .parquet),
        (Array("Obj\u{1}".utf8), .avro), (Array("SQLite format 3\u{0}".utf8), .sqlite),
        ([0xfd, 0x37, 0x7a, 0x58, 0x5a, 0x00], .xz), (Array("BZh".utf8), .bzip2),
        ([0x37, 0x7a, 0xbc, 0xaf, 0x27, 0x1c], .sevenZip), ([0x04, 0x22, 0x4d, 0x18], .lz4),
        (Array("%PDF-".utf8), .pdf), ([0xff, 0xfe], .utf16), ([0xfe, 0xff], .utf16),
    ]

    private static func isWorkbook(_ bytes: [UInt8]) -> Bool {
        let text = String(decoding: bytes, as: UTF8.self)
        return text.contains("[Content_Types].xml") || text.contains("xl/")
    }

    /// Without a mark: text in which every second byte is 0, as UTF-16 writes ASCII.
    private static func isUTF16(_ bytes: [UInt8]) -> Bool {
        let pairs = min(bytes.count, 64) / 2
        guard pairs >= 2 else { return false }
        func isText(low: Int, high: Int) -> Bool {
            (0..<pairs).allSatisfy { bytes[2 * $0 + high] == 0 && bytes[2 * $0 + low] != 0 }
        }
        return isText(low: 0, high: 1) || isText(low: 1, high: 0)
    }

    /// What it is, with its article.
    public var name: String {
        switch self {
        case .zip: "a zip archive"
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
        case .utf16: "UTF-16 text"
        case .jsonArray: "a JSON array, not JSON Lines"
        case .jsonDocument: "a JSON document over several lines, not JSON Lines"
        }
    }

    /// What makes a list of it.
    ///
    /// - Parameter file: its path, as a shell takes it.
    public func remedy(file: String) -> String {
        switch self {
        case .zip: "decompress it, as unzip does: gzip and zstd files are read as they are"
        case .excelWorkbook, .oldExcelWorkbook: "save the sheet as CSV (UTF-8)"
        case .parquet:
            "write it as CSV, such as duckdb -c \"COPY (FROM '\(file)') TO 'list.csv'\""
        case .avro: "write it as CSV or JSON Lines"
        case .sqlite: "write its table as CSV, as sqlite3 -csv -header does"
        case .xz: "decompress it, as xz -d does: gzip and zstd files are read as they are"
        case .bzip2: "decompress it, as bzip2 -d does: gzip and zstd files are read as they are"
        case .sevenZip: "decompress it: gzip and zstd files are read as they are"
        case .lz4: "decompress it, as lz4 -d does: gzip and zstd files are read as they are"
        case .pdf: "name a list of tokens"
        case .utf16: "iconv -f UTF-16 -t UTF-8 \(file) > list.csv"
        case .jsonArray: "jq -c '.[]' \(file) > list.jsonl"
        case .jsonDocument: "write each row as an object on a line of its own, as jq -c does"
        }
    }
}
