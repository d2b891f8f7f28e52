import BroadsidePrimitives
import BroadsideSupport

extension PayloadLint {
    /// Warns about HTML entities in the texts of an alert. Alerts are not HTML, so devices show
    /// `&amp;` as these five characters.
    mutating func checkEntities(_ payload: RawSpan) {
        let offsets = document.alertTexts.map(\.valueOffset)
        var tokenizer = JSONTokenizer()
        while let token = try? tokenizer.next(in: payload) {
            guard token.kind == .string, offsets.contains(token.start - 1),
                let entity = HTMLEntity.first(in: JSONText.decoded(payload, token))
            else { continue }
            warn(
                token.start - 1,
                "devices show \(entity) as it is, because an alert is not HTML: write the "
                    + "character itself")
        }
    }
}

extension PayloadDocument {
    /// The members whose texts devices show: an alert's title, subtitle and body, and the alert.
    var alertTexts: [Member] {
        let texts = members(of: ["aps", "alert"]).filter {
            PayloadLint.textKeys.contains($0.key)
        }
        return texts + [member(["aps"], "alert")].compactMap { $0 }
    }
}

/// An escape of HTML: `&amp;`, `&#8217;`, `&#x2019;`.
enum HTMLEntity {
    /// Frequent names. A list avoids false warnings of texts such as `Q&As;`.
    private static let names: Set<String> = [
        "amp", "apos", "gt", "lt", "nbsp", "quot",
        "bull", "cent", "copy", "deg", "euro", "hellip", "iexcl", "iquest", "laquo", "ldquo",
        "lsquo", "mdash", "middot", "ndash", "pound", "raquo", "rdquo", "reg", "rsquo", "sect",
        "times", "trade", "yen",
        "aacute", "acirc", "aelig", "agrave", "aring", "atilde", "auml", "ccedil", "eacute",
        "ecirc", "egrave", "euml", "iacute", "icirc", "igrave", "iuml", "ntilde", "oacute",
        "ocirc", "ograve", "oslash", "otilde", "ouml", "szlig", "uacute", "ucirc", "ugrave",
        "uuml",
    ]

    /// Maximum number of bytes between `&` and `;`.
    private static let nameLimit = 8

    /// The first entity of a text; nil if there is none.
    static func first(in text: String) -> String? {
        let bytes = Array(text.utf8)
        for start in bytes.indices where bytes[start] == UInt8(ascii: "&") {
            let behind = bytes[(start + 1)...].prefix(nameLimit + 1)
            guard let end = behind.firstIndex(of: UInt8(ascii: ";")) else { continue }
            let name = String(decoding: behind[..<end], as: UTF8.self)
            if isEntity(name) { return "&\(name);" }
        }
        return nil
    }

    private static func isEntity(_ name: String) -> Bool {
        guard name.hasPrefix("#") else { return names.contains(name.lowercased()) }
        let digits = name.dropFirst()
        if digits.first == "x" || digits.first == "X" {
            return digits.count > 1 && digits.dropFirst().allSatisfy(\.isHexDigit)
        }
        return !digits.isEmpty && digits.allSatisfy { $0.isASCII && $0.isNumber }
    }
}
