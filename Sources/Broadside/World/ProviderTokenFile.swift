import APNs
import Campaign
import TLS

/// The provider token of a run: made with the signing key, kept in the ledger's directory, and used
/// again by a resume while it is young. APNs refuses tokens that are renewed too often, and a run
/// that is resumed again and again must not.
struct ProviderTokenFile {
    private static let name = "provider-token"

    var value: [UInt8]
    var issuedAtSeconds: UInt64

    /// The token that lies in the directory, where it is of this key and young enough; else a new
    /// one, which is put there.
    static func take(
        in directory: LedgerDirectory, key: SigningKey, keyID: String, teamID: String,
        nowSeconds: UInt64
    ) throws(BroadsideError) -> ProviderTokenFile {
        let owner = owner(key: key, keyID: keyID, teamID: teamID)
        if let kept = read(in: directory, owner: owner, nowSeconds: nowSeconds) { return kept }
        guard
            let value = sign(
                key: key, keyID: keyID, teamID: teamID, issuedAtSeconds: nowSeconds)
        else {
            throw .request("--auth-key can't sign: use the .p8 file that Apple gave")
        }
        let file = ProviderTokenFile(value: value, issuedAtSeconds: nowSeconds)
        try file.save(in: directory, owner: owner)
        return file
    }

    /// Whose token it is: a key that was put right gets a new one, even under the same name.
    private static func owner(key: SigningKey, keyID: String, teamID: String) -> String {
        let publicHalf = (try? key.verifyingKey.pem) ?? []
        return "\(keyID) \(teamID) \(hexadecimal(sha256(publicHalf)))"
    }

    func save(in directory: LedgerDirectory, owner: String) throws(BroadsideError) {
        let line = "\(issuedAtSeconds) \(owner) "
        try directory.replace(Self.name, with: Array(line.utf8) + value + [0x0a])
    }

    /// `bearer ...` for an issue time; nil where the key can't sign.
    static func sign(
        key: SigningKey, keyID: String, teamID: String, issuedAtSeconds: UInt64
    ) -> [UInt8]? {
        let claims = ProviderTokenClaims(
            keyID: keyID, teamID: teamID, issuedAtUnixSeconds: issuedAtSeconds)
        let input = claims.signingInput
        guard let signature = try? key.signES256(input) else { return nil }
        return ProviderTokenClaims.authorization(
            ProviderTokenClaims.compactToken(signingInput: input, signature: signature))
    }

    private static func read(
        in directory: LedgerDirectory, owner: String, nowSeconds: UInt64
    ) -> ProviderTokenFile? {
        let path = directory.path + "/" + name
        guard let bytes = try? readFile(path, option: "ledger", limit: 8192) else { return nil }
        let words = String(decoding: bytes, as: UTF8.self).split(
            separator: " ", maxSplits: 4, omittingEmptySubsequences: false)
        guard words.count == 5, let issuedAt = UInt64(words[0]),
            words[1...3].joined(separator: " ") == owner, issuedAt <= nowSeconds,
            nowSeconds - issuedAt < ProviderTokenAge.reusableSeconds, words[4].hasSuffix("\n")
        else { return nil }
        return ProviderTokenFile(
            value: Array(words[4].dropLast().utf8), issuedAtSeconds: issuedAt)
    }
}
