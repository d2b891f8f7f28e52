internal import BroadsideAPNs

/// A well-known kind of text found in place of a device token.
public enum ForeignToken: Sendable, Hashable, CaseIterable {
    /// 32 bytes in base64, as in the databases of some servers.
    case base64
    /// Base64 of another number of bytes.
    case otherBase64
    /// A Firebase Cloud Messaging registration token.
    case firebase
    /// A push token of the Expo service.
    case expo
    /// A device token in quotes, in a list of lines.
    case quoted
    /// A device token with the prefix `0x`.
    case prefixed
    /// A device token with the prefix `\x`, as PostgreSQL writes bytea.
    case backslashed
    /// A device token with a name and a colon in front: `ios:c60f…`.
    case labeled
    /// A device token with hyphens, as .NET's BitConverter writes bytes.
    case hyphenated
    /// A device token with blanks or colons between its digits.
    case spaced
    /// A device token as a Python bytes literal: `b'c60f…'`.
    case bytesLiteral
    /// The bytes of a device token as a Python bytes literal: `b'\xc6\x0f…'`.
    case escapedBytes
    /// The description of an NSData: `{length = 8, bytes = 0xc60f415da240c4f4}`.
    case dataDescription
    /// The description of a longer NSData, which omits the digits in the middle.
    case shortenedDescription
    /// A URL-encoded device token: `%3Cc60f415d%20…%3E`.
    case percentEncoded
    /// Several device tokens on one line.
    case several
    /// An array of device tokens, as PostgreSQL, JSON or Python writes it: `{c60f…,a9e1…}`,
    /// `["c60f…"]`.
    case array
    /// A device token among invisible characters, such as no-break spaces.
    case invisible
    /// A UUID: the identifier of a device or an installation.
    case uuid
    /// A device token as text of a spreadsheet: `="c60f…"` or `'c60f…`.
    case spreadsheetText
    /// Digits that a spreadsheet took for a number and rounded: `5.91241E+76`.
    case roundedNumber
    /// A device token as Swift describes an optional: `Optional("c60f…")`.
    case optional
    /// A line of a table that is drawn with characters: a row (`c60f… | FR`), or a separator of
    /// rows (`----+----`).
    case tableRow

    /// Minimum number of digits of a token that is recognized among other characters.
    static let longDigitCount = 32

    /// Number of bytes that suffice to classify a text.
    public static let excerptByteCount = 1_024

    /// Classifies a text that is not a device token; nil if its kind is not known.
    ///
    /// - Parameter text: The whole text, or its first `excerptByteCount` bytes.
    public static func detect(_ text: ArraySlice<UInt8>) -> ForeignToken? {
        let isBlank: (UInt8) -> Bool = { $0 == 0x20 || $0 == 0x09 || $0 == 0x0d }
        let text = text.drop(while: isBlank)
        guard let end = text.lastIndex(where: { !isBlank($0) }) else { return nil }
        let word = Array(text[...end])
        if word.starts(with: "ExponentPushToken[".utf8) || word.starts(with: "ExpoPushToken[".utf8)
        {
            return .expo
        }
        for form in forms where form.matches(word) { return form.kind }
        return nil
    }

    /// The test for each kind; the first match counts.
    private static let forms: [(kind: ForeignToken, matches: @Sendable ([UInt8]) -> Bool)] = [
        (.quoted, isQuoted), (.dataDescription, isDescription),
        (.shortenedDescription, isShortenedDescription), (.bytesLiteral, isBytesLiteral),
        (.escapedBytes, isEscapedBytes), (.prefixed, isPrefixed),
        (.backslashed, isBackslashed), (.percentEncoded, isPercentEncoded), (.uuid, isUUID),
        (.array, isArray), (.several, isSeveral), (.hyphenated, { isGrouped($0, by: "-") }),
        (.spaced, { isGrouped($0, by: " ") || isGrouped($0, by: ":") }),
        (.labeled, isLabeled), (.firebase, isFirebase), (.base64, isBase64),
        (.otherBase64, isOtherBase64),
        (.invisible, isAmongInvisible), (.spreadsheetText, isSpreadsheetText),
        (.roundedNumber, isRoundedNumber), (.optional, isOptional), (.tableRow, isTableRow),
    ]

    static func isToken(_ text: ArraySlice<UInt8>) -> Bool { TokenText.isToken(text) }

    /// Whether a text consists only of digits, as many as a device token can have.
    static func isLongToken(_ text: some Collection<UInt8>) -> Bool {
        text.count >= longDigitCount && text.count <= TokenText.maximumDigitCount
            && text.count.isMultiple(of: 2) && text.allSatisfy(isDigit)
    }

    static func isLetterOrDigit(_ byte: UInt8) -> Bool {
        (0x30...0x39).contains(byte) || (0x41...0x5a).contains(byte)
            || (0x61...0x7a).contains(byte)
    }

    static func isDigit(_ byte: UInt8) -> Bool { Unicode.Scalar(byte).properties.isASCIIHexDigit }

    /// Noun in the plural for texts of this kind, such as "Expo push tokens".
    public var name: String {
        switch self {
        case .base64: "device tokens in base64"
        case .otherBase64: "texts in base64, but not of 32 bytes"
        case .firebase: "FCM registration tokens (Firebase)"
        case .expo: "Expo push tokens"
        case .quoted: "device tokens in quotes"
        case .prefixed: "device tokens with 0x in front"
        case .backslashed: "device tokens with \\x in front (bytea of PostgreSQL)"
        case .labeled: "device tokens with a name and a colon in front (ios:...)"
        case .hyphenated: "device tokens with hyphens"
        case .spaced: "device tokens with blanks or colons between their digits"
        case .bytesLiteral: "device tokens within b'...' (bytes of Python)"
        case .escapedBytes: "bytes as Python shows them (b'\\x...')"
        case .dataDescription: "descriptions of NSData ({length = ..., bytes = 0x...})"
        case .shortenedDescription:
            "descriptions of NSData ({length = ..., bytes = 0x... ... }) without their middle"
        case .percentEncoded: "URL-encoded device tokens"
        case .several: "rows of several device tokens"
        case .array: "arrays of device tokens ({...} or [...])"
        case .invisible: "device tokens with invisible characters (no-break spaces and the like)"
        case .uuid: "UUIDs, not device tokens"
        case .spreadsheetText: "device tokens as texts of a spreadsheet (=\"...\" or '...)"
        case .roundedNumber: "numbers that a spreadsheet has rounded"
        case .optional: "device tokens within Optional(...), as Swift describes them"
        case .tableRow: "rows of a table with '|' between its columns"
        }
    }

    /// What a row with a text of this kind has, such as "Expo push tokens".
    public var content: String {
        switch self {
        case .several: "several device tokens"
        case .tableRow: "'|' between their columns"
        default: name
        }
    }

    /// Returns a noun in the plural for texts of this kind, such as "Expo push tokens". For
    /// `roundedNumber`, an example follows the noun.
    ///
    /// - Parameter text: Excerpt of a text of this kind.
    public func name(withExample text: String) -> String {
        self == .roundedNumber ? "\(name) ('\(text)')" : name
    }

    /// Advice on fixing the list. If there is a command, the advice ends with it.
    ///
    /// - Parameter isColumn: Whether rows have other columns. If so, the advice has no command,
    ///   because a command changes whole lines.
    public func remedy(_ command: ListCommand, isColumn: Bool) -> String {
        let (what, inColumn) = advice
        guard let filter, !isColumn else { return isColumn ? inColumn : what }
        return "\(what), such as \(command.filter(filter))"
    }

    /// Whether the advice ends with a command.
    public func hasCommand(isColumn: Bool) -> Bool { filter != nil && !isColumn }

    /// Advice on fixing the list, without a command.
    public func advice(isColumn: Bool) -> String { isColumn ? advice.column : advice.lines }

    /// Advice for lists of lines, and for lists with columns.
    private var advice: (lines: String, column: String) {
        switch self {
        case .base64:
            (
                "write them in hexadecimal",
                "write that column in hexadecimal, as Python's base64.b64decode(text).hex() does"
            )
        case .otherBase64: same("export the device tokens in hexadecimal")
        case .firebase:
            same(
                "broadside sends to APNs only: export the APNs device tokens, not those of Firebase"
            )
        case .expo:
            same("broadside sends to APNs only: export what getDevicePushTokenAsync returns")
        case .quoted: ("remove the quotes", "remove the quotes from that column")
        case .prefixed: ("remove 0x", "remove 0x from that column")
        case .backslashed:
            ("remove \\x", "select encode(COLUMN, 'hex') in its place")
        case .labeled:
            ("remove the text in front", "remove the text in front from that column")
        case .hyphenated: ("remove the hyphens", "remove the hyphens from that column")
        case .spaced: ("remove these", "remove these from that column")
        case .bytesLiteral:
            ("write the text alone", "write that column as text, as Python's decode() does")
        case .escapedBytes:
            (
                "write them in hexadecimal",
                "write that column in hexadecimal, as Python's hex() does"
            )
        case .dataDescription:
            ("write only the digits", "write only the digits into that column")
        case .shortenedDescription:
            same("their digits are lost: have the app report its device token in hexadecimal")
        case .percentEncoded: ("decode them", "decode that column")
        case .several, .array: ("write one per line", "write one row per device token")
        case .invisible: ("remove these", "remove these from that column")
        case .uuid: same("export the device tokens that APNs gave to the app")
        case .spreadsheetText:
            ("write only the digits", "write only the digits into that column")
        case .roundedNumber:
            same("their digits are lost: export the list again, and import that column as text")
        case .optional: ("write only the digits", "write only the digits into that column")
        case .tableRow: same(Self.tableAdvice)
        }
    }

    /// Advice on a table that is formatted for display, with lines between its columns.
    public static let tableAdvice =
        "write the list as CSV, as psql --csv and bq query --format=csv do"

    private func same(_ advice: String) -> (lines: String, column: String) { (advice, advice) }
}
