import BroadsideHPACK
import BroadsideSupport

/// One request, sent alone, with its header fields as text.
struct SingleRequest {
    var method: String
    var path: String
    /// Apple's header fields, in the order in which they are sent.
    var fields: [(name: String, value: String)] = []
    var body: [UInt8] = []

    /// Header field that a client indexes at its first occurrence on a connection, as Apple asks.
    private static let indexedField = "apns-expiration"

    /// Returns a header block that depends on no earlier one. Apple's header fields are literals
    /// without Huffman codes (RFC 7541 section 6.2). Only `indexedField` is added to the dynamic
    /// table, and only if the server allows a table of the initial size. For a smaller table, the
    /// block begins with a size update (RFC 7541 section 4.2).
    ///
    /// - Parameters:
    ///   - authorization: Value of the field; nil with a certificate.
    ///   - tableSize: The server's limit of the dynamic table, in bytes.
    func headerBlock(
        authority: String, authorization: [UInt8]?, tableSize: UInt32
    ) -> [UInt8] {
        assert(path.hasPrefix("/"), "a path begins at the root")
        assert(
            fields.allSatisfy { !$0.name.utf8.contains { (0x41...0x5A).contains($0) } },
            "header field names are in lower case (RFC 9113, 8.2)")
        var block: [UInt8] = []
        let isLimited = tableSize < DynamicTableMirror().capacity
        if isLimited {
            Self.append(integer: Int(tableSize), prefixMax: 31, pattern: 0x20, to: &block)
        }
        // Entries 2, 3 and 7 of the static table are GET, POST and https.
        switch method {
        case "GET": block.append(0x82)
        case "POST": block.append(0x83)
        default: Self.append(nameIndex: 2, Array(method.utf8), to: &block)
        }
        block.append(0x87)
        Self.append(nameIndex: 4, Array(path.utf8), to: &block)
        Self.append(nameIndex: 1, Array(authority.utf8), to: &block)
        if let authorization { Self.append(nameIndex: 23, authorization, to: &block) }
        for field in fields {
            block.append(field.name == Self.indexedField && !isLimited ? 0x40 : 0)
            Self.append(text: Array(field.name.utf8), to: &block)
            Self.append(text: Array(field.value.utf8), to: &block)
        }
        return block
    }

    private static func append(nameIndex: Int, _ value: [UInt8], to block: inout [UInt8]) {
        append(integer: nameIndex, prefixMax: 15, to: &block)
        append(text: value, to: &block)
    }

    private static func append(text: [UInt8], to block: inout [UInt8]) {
        append(integer: text.count, prefixMax: 127, to: &block)
        block += text
    }

    /// Appends an integer to a header block (RFC 7541 section 5.1). `pattern` has the bits before
    /// the integer's prefix.
    private static func append(
        integer: Int, prefixMax: Int, pattern: UInt8 = 0, to block: inout [UInt8]
    ) {
        guard integer >= prefixMax else { return block.append(pattern | UInt8(integer)) }
        block.append(pattern | UInt8(prefixMax))
        var rest = integer - prefixMax
        while rest >= 128 {
            block.append(UInt8(rest & 127 | 128))
            rest >>= 7
        }
        block.append(UInt8(rest))
    }

    /// The request as `--preview` shows it, one field per line, without the credential.
    ///
    /// - Parameter credential: Description of the credential; nil: the request has no field for it.
    func text(authority: String, credential: String?) -> String {
        var lines = [
            ":method: \(method)", ":scheme: https", ":path: \(path)", ":authority: \(authority)",
        ]
        if let credential { lines.append("authorization: bearer … (\(credential))") }
        lines += fields.map { "\($0.name): \($0.value)" }
        var text = lines.map { "  \(ForeignText.escaped($0))\n" }.joined()
        if !body.isEmpty {
            text += "\n  \(ForeignText.escaped(String(decoding: body, as: UTF8.self)))\n"
            text += "  (\(grouped(body.count)) bytes)\n"
        }
        return text
    }
}
