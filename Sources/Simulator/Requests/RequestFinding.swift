internal import BroadsideAPNs

/// A defect of a request that APNs may tolerate. Defects are counted, and reported at the end.
enum RequestFinding: CaseIterable, Sendable {
    /// The provider token's `iat` is a string of digits; RFC 7519 section 4.1.6 requires a number.
    case textualIssueTime
    /// The body is not a JSON dictionary.
    case notADictionary
    /// The body is compressed, or `content-encoding` declares that it is. Apple: "don't compress
    /// the body".
    case compressedBody

    /// Determines the defect of a body; nil for a JSON dictionary.
    ///
    /// - Parameter claimsCompression: True if `content-encoding` declares compression.
    init?(body: [UInt8], claimsCompression: Bool) {
        // SAFETY: bytes have no padding.
        if !claimsCompression, PayloadRules.isJSONObject(body.span.rawBytes) { return nil }
        let isCompressed = claimsCompression || Self.signatures.contains(where: body.starts)
        self = isCompressed ? .compressedBody : .notADictionary
    }

    /// The first bytes of gzip, of zstd, and of zlib with its usual windows and levels (RFC 1950).
    private static let signatures: [[UInt8]] = [
        [0x1f, 0x8b], [0x28, 0xb5, 0x2f, 0xfd], [0x78, 0x01], [0x78, 0x5e], [0x78, 0x9c],
        [0x78, 0xda],
    ]

    /// The description used in the totals.
    var text: String {
        switch self {
        case .textualIssueTime: "provider token: iat is a string, not a number"
        case .notADictionary: "payload: not a JSON dictionary"
        case .compressedBody: "payload: compressed"
        }
    }
}
