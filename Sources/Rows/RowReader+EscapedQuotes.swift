import BroadsideSupport

extension RowReader {
    /// Whether a malformed row of CSV has a quoted field in which backslashes escape quotes, such as
    /// `"Jim \"JJ\" Doe"`. Spark and MySQL write such fields. In RFC 4180, the quote after a
    /// backslash closes the field.
    ///
    /// A backslash before a field's last quote, as in `"C:\"`, is text.
    public func escapesQuotes(_ row: Row) -> Bool {
        guard columns.format.quotesSpanLines else { return false }
        let rowText = text(of: row)
        let (quote, backslash) = (UInt8(ascii: "\""), UInt8(ascii: "\\"))
        var hasQuotedField = false
        for offset in 0..<max(0, rowText.byteCount - 2) {
            let byte = rowText.byte(at: offset)
            if byte == quote, offset == 0 || rowText.byte(at: offset - 1) == separator {
                hasQuotedField = true
            }
            guard hasQuotedField, byte == backslash, rowText.byte(at: offset + 1) == quote else {
                continue
            }
            let next = rowText.byte(at: offset + 2)
            if next != separator, next != quote, next != UInt8(ascii: "\n"),
                next != UInt8(ascii: "\r")
            {
                return true
            }
        }
        return false
    }
}
