import APNs
import Campaign
import Engine
import Ledgers
import Support
import TLS

/// The provider tokens of a campaign: made with the signing key, kept in the ledger's directory, and
/// used again by a resume while they are young. APNs refuses tokens that are renewed too often, and a
/// run that is resumed again and again must not.
///
/// A line a key: `SECONDS KEY-ID TEAM-ID SHA-256-OF-THE-PUBLIC-KEY bearer TOKEN`.
struct ProviderTokenFile {
    private static let name = "provider-token"
    /// Keys whose newest token is kept.
    private static let keysLimit = 8
    /// A token from so far ahead is still used: the clock was set back a little.
    private static let aheadSeconds: UInt64 = 300

    private let directory: LedgerDirectory
    private let key: SigningKey
    private let keyID: String
    private let teamID: String
    /// Whose tokens are kept here: a key that was put right gets new ones, even under the same name.
    private let owner: String

    init(in directory: LedgerDirectory, key: SigningKey, keyID: String, teamID: String) {
        self.directory = directory
        self.key = key
        self.keyID = keyID
        self.teamID = teamID
        let publicHalf = (try? key.verifyingKey.pem) ?? []
        owner = "\(keyID) \(teamID) \(hexadecimal(sha256(publicHalf)))"
    }

    /// The token that lies in the directory, where it is of this key and young enough; else a new
    /// one, which is put there.
    func take(nowSeconds: UInt64) throws(BroadsideError) -> ProviderTokenLife.Token {
        if let kept = lines().lazy.compactMap({ token(in: $0, nowSeconds: nowSeconds) }).first {
            return kept
        }
        guard
            let value = Self.sign(
                key: key, keyID: keyID, teamID: teamID, issuedAtSeconds: nowSeconds)
        else {
            throw .usage("auth-key", "can't sign: use the .p8 file that Apple gave")
        }
        try keep(value, issuedAtSeconds: nowSeconds)
        return .init(value: value, issuedAt: nowSeconds)
    }

    /// Puts a token there for later runs.
    func keep(_ value: [UInt8], issuedAtSeconds: UInt64) throws(BroadsideError) {
        let line = "\(issuedAtSeconds) \(owner) " + String(decoding: value, as: UTF8.self)
        let others = lines().filter { Self.words($0).map { $0.owner != owner } ?? false }
        let text = ([line] + others.prefix(Self.keysLimit - 1)).joined(separator: "\n") + "\n"
        try directory.replace(Self.name, with: Array(text.utf8))
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

    // MARK: The file

    private func lines() -> [String] {
        guard let bytes = try? directory.readSmallFile(Self.name, limit: 1 << 16),
            bytes.last == 0x0a
        else { return [] }
        return bytes.split(separator: 0x0a).map { String(decoding: $0, as: UTF8.self) }
    }

    private static func words(
        _ line: String
    ) -> (issuedAt: UInt64, owner: String, value: Substring)? {
        let words = line.split(separator: " ", maxSplits: 4, omittingEmptySubsequences: false)
        guard words.count == 5, let issuedAt = UInt64(words[0]) else { return nil }
        return (issuedAt, words[1...3].joined(separator: " "), words[4])
    }

    private func token(in line: String, nowSeconds: UInt64) -> ProviderTokenLife.Token? {
        guard let (issuedAt, owner, value) = Self.words(line), owner == self.owner,
            issuedAt <= nowSeconds + Self.aheadSeconds,
            nowSeconds < issuedAt + ProviderTokenAge.reusableSeconds
        else { return nil }
        return .init(value: Array(value.utf8), issuedAt: issuedAt)
    }
}
