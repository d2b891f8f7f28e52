import BroadsideAPNs
import BroadsideEngine
import BroadsideLedgers
import BroadsideSupport
import BroadsideTLS

/// Signs provider tokens with a key. The same key and issue time result in the same bytes on every
/// machine (RFC 6979), so tokens are not stored.
struct ProviderTokenSigner: Sendable {
    let key: SigningKey
    let keyID: String
    let teamID: String

    /// Returns `bearer ...` for an issue time; nil if the key can't sign.
    ///
    /// - Parameter issuedAtSeconds: Value of `iat`, seconds since 1970.
    func sign(issuedAtSeconds: UInt64) -> [UInt8]? {
        try? authorization(issuedAtSeconds: issuedAtSeconds)
    }

    private func authorization(issuedAtSeconds: UInt64) throws(TLSError) -> [UInt8] {
        let claims = ProviderTokenClaims(
            keyID: keyID, teamID: teamID, issuedAtUnixSeconds: issuedAtSeconds)
        let input = claims.signingInput
        let signature = try key.signES256(input)
        return ProviderTokenClaims.authorization(
            ProviderTokenClaims.compactToken(signingInput: input, signature: signature))
    }

    /// Returns the provider token to use at the time `nowSeconds`.
    ///
    /// - Parameters:
    ///   - nowSeconds: Seconds since 1970.
    ///   - shiftSeconds: Seconds to add to the token's issue time.
    func token(
        nowSeconds: UInt64, shiftSeconds: Int64 = 0
    ) throws(BroadsideError) -> ProviderTokenLife.Token {
        let date = Int64(ProviderTokenAge.issueTime(at: nowSeconds)) + shiftSeconds
        let issuedAt = UInt64(max(0, date))
        do throws(TLSError) {
            return .init(
                value: try authorization(issuedAtSeconds: issuedAt), issuedAt: issuedAt)
        } catch {
            throw Self.refusal(error, option: "auth-key")
        }
    }

    /// The error for a key that can't sign.
    ///
    /// - Parameter option: The option that names the key.
    static func refusal(_ error: TLSError, option: String) -> BroadsideError {
        .usage(
            option,
            error.code == .noSigner
                ? "can't sign: \(error.message)"
                : "can't sign: use the .p8 file that you got from Apple")
    }
}

extension LedgerDirectory {
    /// Removes the provider tokens that earlier versions stored in a ledger. They are secrets, and
    /// this version does not use them.
    func removeEarlierProviderTokens() {
        removeFile("provider-token")
        removeFile(".provider-token.new")
    }
}
