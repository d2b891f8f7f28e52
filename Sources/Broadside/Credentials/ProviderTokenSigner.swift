import BroadsideAPNs
import BroadsideEngine
import BroadsideLedgers
import BroadsideSupport
import BroadsideTLS

/// Makes the provider tokens of a signing key. The same key and date make the same bytes on every
/// machine (RFC 6979), so nothing of them is kept anywhere.
struct ProviderTokenSigner: Sendable {
    let key: SigningKey
    let keyID: String
    let teamID: String

    /// `bearer ...` for an issue time; nil where the key can't sign.
    ///
    /// - Parameter issuedAtSeconds: `iat`: seconds since 1970.
    func sign(issuedAtSeconds: UInt64) -> [UInt8]? {
        let claims = ProviderTokenClaims(
            keyID: keyID, teamID: teamID, issuedAtUnixSeconds: issuedAtSeconds)
        let input = claims.signingInput
        guard let signature = try? key.signES256(input) else { return nil }
        return ProviderTokenClaims.authorization(
            ProviderTokenClaims.compactToken(signingInput: input, signature: signature))
    }

    /// The token that is used at a time.
    ///
    /// - Parameters:
    ///   - nowSeconds: Seconds since 1970.
    ///   - shiftSeconds: Dates it otherwise.
    func token(
        nowSeconds: UInt64, shiftSeconds: Int64 = 0
    ) throws(BroadsideError) -> ProviderTokenLife.Token {
        let date = Int64(ProviderTokenAge.issueTime(at: nowSeconds)) + shiftSeconds
        let issuedAt = UInt64(max(0, date))
        guard let value = sign(issuedAtSeconds: issuedAt) else {
            throw .usage("auth-key", "can't sign: use the .p8 file that Apple gave")
        }
        return .init(value: value, issuedAt: issuedAt)
    }
}

extension LedgerDirectory {
    /// Takes away the provider tokens that earlier versions left in a ledger: they are secrets, and
    /// nobody reads them any more.
    func removeEarlierProviderTokens() {
        removeFile("provider-token")
        removeFile(".provider-token.new")
    }
}
