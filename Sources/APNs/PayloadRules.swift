import BroadsidePrimitives

/// Apple's limits for payloads.
///
/// Source: Apple, "Generating a remote notification", "Payload size".
public enum PayloadRules {
    /// Maximum byte count of a payload on the provider API for all push types except VoIP.
    public static let maximumCount = 4_096

    /// Maximum byte count of a VoIP payload.
    public static let maximumVoIPCount = 5_120

    /// Maximum byte count of a payload in command 2 of the legacy binary protocol.
    public static let maximumLegacyCount = 2_048

    /// Maximum byte count of a payload in commands 0 and 1 of the legacy binary protocol.
    public static let maximumOldestLegacyCount = 256

    /// Returns the maximum byte count of a payload of this type, inclusive.
    public static func maximumCount(for pushType: PushType) -> Int {
        pushType.rules.maximumPayloadCount
    }

    /// Returns whether `payload` is exactly one JSON object (RFC 8259) in UTF-8.
    public static func isJSONObject(_ payload: RawSpan) -> Bool {
        var tokenizer = JSONTokenizer()
        do {
            guard try tokenizer.next(in: payload)?.kind == .objectStart else { return false }
            while try tokenizer.next(in: payload) != nil {}
            return true
        } catch {
            return false
        }
    }
}
