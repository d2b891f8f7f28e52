internal import BroadsideAPNs

/// What a request has that may pass and is still wrong: counted, and named at the end.
enum RequestFinding: CaseIterable, Sendable {
    /// The provider token's `iat` is a string of digits: RFC 7519 section 4.1.6 asks for a number.
    case textualIssueTime
    /// The body is not a JSON dictionary.
    case notADictionary
    /// The body is compressed, or said to be. Apple: "don't compress the body".
    case compressedBody

    /// What is wrong with a body; nil for a JSON dictionary.
    ///
    /// - Parameter isSaidToBeCompressed: `content-encoding` says so.
    init?(body: [UInt8], claimsCompression: Bool) {
        // SAFETY: bytes have no padding.
        if !claimsCompression, PayloadRules.isJSONObject(body.span.rawBytes) { return nil }
        let isCompressed = claimsCompression || Self.signatures.contains(where: body.starts)
        self = isCompressed ? .compressedBody : .notADictionary
    }

    /// The first bytes of gzip, of zstd, and of zlib's usual windows and levels (RFC 1950).
    private static let signatures: [[UInt8]] = [
        [0x1f, 0x8b], [0x28, 0xb5, 0x2f, 0xfd], [0x78, 0x01], [0x78, 0x5e], [0x78, 0x9c],
        [0x78, 0xda],
    ]

    /// As the totals name it.
    var text: String {
        switch self {
        case .textualIssueTime: "provider token: iat is a string, not a number"
        case .notADictionary: "payload: not a JSON dictionary"
        case .compressedBody: "payload: compressed"
        }
    }
}
