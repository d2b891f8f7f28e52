import BroadsideLists
import BroadsideRows

extension TokenList {
    /// Command that converts a list from a spreadsheet's encoding to UTF-8.
    var utf8Command: String { command.filter("iconv -f WINDOWS-1252 -t UTF-8") }
}

/// Whether bytes are text in UTF-8.
func isUTF8Text(_ bytes: [UInt8]) -> Bool { String(validating: bytes, as: UTF8.self) != nil }
