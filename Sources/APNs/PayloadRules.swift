import BroadsidePrimitives

/// Apple's limits for payloads.
///
/// Source: Apple, "Generating a remote notification", "Payload size".
public enum PayloadRules {
    /// The most bytes of a payload on the provider API, all push types but VoIP.
    public static let maximumCount = 4_096

    /// The most bytes of a VoIP payload.
    public static let maximumVoIPCount = 5_120

    /// The most bytes of a payload in the legacy binary protocol's command 2.
    public static let maximumLegacyCount = 2_048

    /// The most bytes that are documented for its commands 0 and 1.
    public static let maximumOldestLegacyCount = 256

    /// The most bytes of a payload of this type; exactly as many are still legal.
    public static func maximumCount(for pushType: PushType) -> Int {
        pushType == .voip ? maximumVoIPCount : maximumCount
    }

    /// Whether `payload` is one JSON object (RFC 8259) and nothing else, in UTF-8.
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
