import BroadsidePrimitives

/// The claims of a provider token: the key that signed it, the team, and the time of issue.
///
/// The token is a JSON Web Token in compact form (RFC 7515 section 3.1), signed with ES256 (RFC
/// 7518 section 3.4). Source: Apple, "Establishing a token-based connection to APNs".
public struct ProviderTokenClaims: Sendable, Equatable {
    /// `kid`: the key's ten-character identifier.
    public var keyID: String
    /// `iss`: the team's ten-character identifier.
    public var teamID: String
    /// `iat`: the time of issue, Unix seconds.
    public var issuedAtUnixSeconds: UInt64

    /// Byte count of an ES256 signature: R and S, each padded to 32 bytes.
    static let signatureCount = 64

    /// Creates the claims of a token to be signed.
    public init(keyID: String, teamID: String, issuedAtUnixSeconds: UInt64) {
        self.keyID = keyID
        self.teamID = teamID
        self.issuedAtUnixSeconds = issuedAtUnixSeconds
    }

    /// Returns whether `text` has the form of a key or team identifier: ten capital letters and
    /// digits.
    public static func isIdentifier(_ text: String) -> Bool {
        text.utf8.count == 10
            && text.utf8.allSatisfy {
                ($0 >= UInt8(ascii: "A") && $0 <= UInt8(ascii: "Z"))
                    || ($0 >= UInt8(ascii: "0") && $0 <= UInt8(ascii: "9"))
            }
    }

    /// The text to be signed: `base64url(header).base64url(claims)`.
    ///
    /// Both identifiers must satisfy `isIdentifier`, so neither needs escaping.
    public var signingInput: [UInt8] {
        precondition(ProviderTokenClaims.isIdentifier(keyID), "a key ID has ten characters")
        precondition(ProviderTokenClaims.isIdentifier(teamID), "a team ID has ten characters")
        let header = "{\"alg\":\"ES256\",\"kid\":\"\(keyID)\"}"
        let claims = "{\"iss\":\"\(teamID)\",\"iat\":\(issuedAtUnixSeconds)}"
        return Base64URL.encode(Array(header.utf8)) + [UInt8(ascii: ".")]
            + Base64URL.encode(Array(claims.utf8))
    }

    /// Returns the compact token.
    ///
    /// - Parameters:
    ///   - signingInput: The value of `signingInput` that was signed.
    ///   - signature: R and S, 64 bytes, not the DER form.
    public static func compactToken(signingInput: [UInt8], signature: [UInt8]) -> [UInt8] {
        precondition(signature.count == signatureCount, "an ES256 signature has 64 bytes")
        return signingInput + [UInt8(ascii: ".")] + Base64URL.encode(signature)
    }

    /// Returns the value of the `authorization` header for a compact token.
    public static func authorization(_ compactToken: [UInt8]) -> [UInt8] {
        Array("bearer ".utf8) + compactToken
    }
}
