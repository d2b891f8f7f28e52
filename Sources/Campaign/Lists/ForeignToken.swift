internal import APNs

/// What stands where a device token is wanted, and is something else that people know by a name.
public enum ForeignToken: Sendable, Equatable, CaseIterable {
    /// 32 bytes or more, as some servers' databases keep them.
    case base64
    /// A registration token of Firebase Cloud Messaging.
    case firebase
    /// A push token of Expo's service.
    case expo
    /// A device token between quotes, in a list of lines.
    case quoted
    /// A device token with `0x` in front.
    case prefixed
    /// A UUID: a device's or an installation's identifier.
    case uuid

    /// What a text is that is not a device token; nil where nobody knows.
    public static func detect(_ text: ArraySlice<UInt8>) -> ForeignToken? {
        let isBlank: (UInt8) -> Bool = { $0 == 0x20 || $0 == 0x09 || $0 == 0x0d }
        let text = text.drop(while: isBlank)
        guard let end = text.lastIndex(where: { !isBlank($0) }) else { return nil }
        let word = Array(text[...end])
        if word.starts(with: Array("ExponentPushToken[".utf8))
            || word.starts(with: Array("ExpoPushToken[".utf8))
        {
            return .expo
        }
        for quote in [UInt8(ascii: "\""), UInt8(ascii: "'")]
        where word.count > 2 && word.first == quote && word.last == quote {
            return isToken(word[1..<word.count - 1]) ? .quoted : nil
        }
        if word.starts(with: Array("0x".utf8)) || word.starts(with: Array("0X".utf8)) {
            return isToken(word[2...]) ? .prefixed : nil
        }
        if isUUID(word) { return .uuid }
        if isFirebase(word) { return .firebase }
        return isBase64(word) ? .base64 : nil
    }

    private static func isToken(_ text: ArraySlice<UInt8>) -> Bool {
        TokenText.isToken(text)
    }

    private static func isLetterOrDigit(_ byte: UInt8) -> Bool {
        (0x30...0x39).contains(byte) || (0x41...0x5a).contains(byte)
            || (0x61...0x7a).contains(byte)
    }

    private static func isUUID(_ word: [UInt8]) -> Bool {
        let hyphens: Set = [8, 13, 18, 23]
        return word.count == 36
            && word.enumerated().allSatisfy { place, byte in
                hyphens.contains(place)
                    ? byte == UInt8(ascii: "-") : UnicodeScalar(byte).properties.isASCIIHexDigit
            }
    }

    /// An instance's name, a colon, and far more behind it than a device token has.
    private static func isFirebase(_ word: [UInt8]) -> Bool {
        guard word.count >= 100, let colon = word.firstIndex(of: UInt8(ascii: ":")), colon > 0
        else {
            return false
        }
        return word.allSatisfy { byte in
            isLetterOrDigit(byte) || Array("-_:".utf8).contains(byte)
        }
    }

    private static func isBase64(_ word: [UInt8]) -> Bool {
        let digits = word.prefix { $0 != UInt8(ascii: "=") }
        guard digits.count >= 40, word.count - digits.count <= 2,
            word.count == digits.count || word.count.isMultiple(of: 4), digits.count % 4 != 1,
            word[digits.count...].allSatisfy({ $0 == UInt8(ascii: "=") })
        else { return false }
        return digits.allSatisfy { isLetterOrDigit($0) || Array("+/-_".utf8).contains($0) }
            && !digits.allSatisfy { UnicodeScalar($0).properties.isASCIIHexDigit }
    }

    /// What such texts are, in the plural.
    public var name: String {
        switch self {
        case .base64: "device tokens in base64"
        case .firebase: "FCM registration tokens (Firebase)"
        case .expo: "Expo push tokens"
        case .quoted: "device tokens in quotes"
        case .prefixed: "device tokens with 0x in front"
        case .uuid: "UUIDs, not device tokens"
        }
    }

    /// What can be done about it.
    ///
    /// - Parameters:
    ///   - file: the list's path, as a shell takes it.
    ///   - isColumn: whether rows have other columns, which a command for whole lines would change.
    public func remedy(file: String, isColumn: Bool) -> String {
        switch self {
        case .base64 where isColumn:
            "write that column in hexadecimal, as Python's base64.b64decode(text).hex() does"
        case .base64:
            // Too much padding does no harm.
            "write them in hexadecimal, such as python3 -c 'import sys,base64; "
                + #"[print(base64.b64decode(l.strip().replace("-","+").replace("_","/")+"==").hex()) "#
                + "for l in sys.stdin]' < \(file) > list.txt"
        case .firebase:
            "broadside sends to APNs only: export the APNs device tokens, not those of Firebase"
        case .expo:
            "broadside sends to APNs only: export what getDevicePushTokenAsync returns"
        case .quoted where isColumn: "take the quotes away from that column"
        case .prefixed where isColumn: "take 0x away from that column"
        case .quoted: "take the quotes away, such as tr -d \"\\\"'\" < \(file) > list.txt"
        case .prefixed: "take 0x away, such as sed 's/0x//i' \(file) > list.txt"
        case .uuid: "export the device tokens that APNs gave to the app"
        }
    }
}
