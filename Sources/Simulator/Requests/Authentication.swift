internal import BroadsideAPNs
internal import BroadsideSupport

/// A key that provider tokens may be signed with.
struct ProviderKey: Sendable {
    let keyID: String
    let teamID: String
    /// The environment that the key is for; nil: both.
    var environment: Endpoints.Environment?
    /// The topics that the key is for, without suffixes; nil: all of the team.
    var topics: [[UInt8]]?
    /// The key that may take its place on a connection; nil for none.
    var relatedKeyID: String?
    /// Whether a signature, raw (64 bytes) or DER, over a message is this key's.
    let verifies: @Sendable (_ message: [UInt8], _ signature: [UInt8]) -> Bool
}

/// A provider token that was found in order, or not.
struct CheckedToken: Sendable {
    /// The compact token.
    let text: [UInt8]
    /// What tells it from others.
    let fingerprint: UInt64
    /// Which of the keys signed it; nil where it is not a valid token.
    let key: Int?
    let issuedAtUnixSeconds: UInt64
    /// `iat` is a string, not a number.
    var hasTextualIssueTime = false
}

/// Verifies provider tokens, each once: a thread's own, with the tokens that it has seen.
struct ProviderTokenVerifier {
    private let keys: [ProviderKey]
    private var cache: [CheckedToken] = []
    private var nextVictim = 0

    init(keys: [ProviderKey]) {
        self.keys = keys
        cache.reserveCapacity(SimulatorLimits.cachedTokens)
    }

    func key(_ index: Int) -> ProviderKey { keys[index] }

    /// The token with what is known about it.
    mutating func check(_ token: RawSpan) -> CheckedToken {
        for known in cache where token.equals(known.text) { return known }
        let checked = verify(Array(token))
        if cache.count < SimulatorLimits.cachedTokens {
            cache.append(checked)
        } else {
            cache[nextVictim] = checked
            nextVictim = (nextVictim + 1) % SimulatorLimits.cachedTokens
        }
        return checked
    }

    private func verify(_ token: [UInt8]) -> CheckedToken {
        var fingerprint: UInt64 = 0xcbf2_9ce4_8422_2325
        for byte in token { fingerprint = (fingerprint ^ UInt64(byte)) &* 0x100_0000_01b3 }
        let refused = CheckedToken(
            text: token, fingerprint: fingerprint, key: nil, issuedAtUnixSeconds: 0)
        guard let parsed = try? ProviderTokenClaims.parse(token),
            let index = keys.firstIndex(where: {
                $0.keyID == parsed.claims.keyID && $0.teamID == parsed.claims.teamID
            }),
            keys[index].verifies(Array(token[..<parsed.signingInputCount]), parsed.signature)
        else { return refused }
        return CheckedToken(
            text: token, fingerprint: fingerprint, key: index,
            issuedAtUnixSeconds: parsed.claims.issuedAtUnixSeconds,
            hasTextualIssueTime: parsed.hasTextualIssueTime)
    }
}

/// How one connection's requests are authenticated.
///
/// Apple, "Establishing a token-based connection to APNs": the first push binds a connection to its
/// team and key. With a client certificate the `authorization` header is ignored.
struct ConnectionCredential {
    /// A client certificate was presented and found in order.
    let hasCertificate: Bool
    /// The key of the first accepted token.
    private var boundKey: Int?
    /// The last token that was accepted here, to be recognised without a look-up.
    private var last: CheckedToken?
    /// The one before it, which may still be on its way.
    private var previous: CheckedToken?

    /// What tells the last accepted token from others; nil where there was none.
    var lastFingerprint: UInt64? { last?.fingerprint }
    /// Its `iat` is a string, not a number.
    var hasTextualIssueTime: Bool { last?.hasTextualIssueTime ?? false }

    init(hasCertificate: Bool) {
        self.hasCertificate = hasCertificate
    }

    /// Why the request is refused; nil where its credential is in order.
    mutating func refusal(
        authorization: RawSpan?, verifier: inout ProviderTokenVerifier,
        environment: Endpoints.Environment = .production, nowUnixSeconds: UInt64
    ) -> Reason? {
        if hasCertificate { return nil }
        guard let value = authorization else { return .missingProviderToken }
        guard value.byteCount > 7, Self.isBearer(value) else { return .invalidProviderToken }
        let token = value.extracting(7...)
        if let last, token.equals(last.text) {
            return Self.ageRefusal(last, nowUnixSeconds: nowUnixSeconds)
        }
        let checked = verifier.check(token)
        guard let key = checked.key else { return .invalidProviderToken }
        if let reason = Self.ageRefusal(checked, nowUnixSeconds: nowUnixSeconds) { return reason }
        let presented = verifier.key(key)
        if let scope = presented.environment, scope != environment {
            return .badEnvironmentKeyIDInToken
        }
        if let boundKey, boundKey != key {
            // One connection, one team; and within a team one key, or the one related to it.
            let bound = verifier.key(boundKey)
            guard bound.teamID == presented.teamID else { return .invalidProviderToken }
            guard bound.relatedKeyID == presented.keyID else { return .unrelatedKeyIDInToken }
        }
        if let reason = renewalRefusal(checked) { return reason }
        if boundKey == nil { boundKey = key }
        return nil
    }

    /// "Refresh your token no more than once every 20 minutes": told by the times of issue, so that
    /// it does not depend on when requests come.
    private mutating func renewalRefusal(_ token: CheckedToken) -> Reason? {
        if let previous, previous.text == token.text {
            swap(&self.previous, &last)
            return nil
        }
        if let last, last.key == token.key,
            token.issuedAtUnixSeconds < last.issuedAtUnixSeconds + Self.renewalSeconds
        {
            return .tooManyProviderTokenUpdates
        }
        previous = last
        last = token
        return nil
    }

    /// The last token was made to expire: the next one comes early without any fault.
    mutating func forgetLast() {
        last = nil
        previous = nil
    }

    private static let renewalSeconds: UInt64 = 20 * 60

    /// The topics of the key that the last accepted token was signed with; nil: all of its team.
    func topics(_ verifier: ProviderTokenVerifier) -> [[UInt8]]? {
        last?.key.flatMap { verifier.key($0).topics }
    }

    /// "APNs rejects a token whose issue time is more than one hour from the current time."
    private static func ageRefusal(_ token: CheckedToken, nowUnixSeconds: UInt64) -> Reason? {
        let hour = ProviderTokenAge.expirySeconds
        if token.issuedAtUnixSeconds + hour < nowUnixSeconds { return .expiredProviderToken }
        if token.issuedAtUnixSeconds > nowUnixSeconds + hour { return .invalidProviderToken }
        return nil
    }

    /// The scheme, whose case does not matter (RFC 9110 section 11.1), and its blank.
    private static func isBearer(_ value: RawSpan) -> Bool {
        let scheme: StaticString = "bearer"
        let letters = scheme.rawBytes
        for position in 0..<6 {
            guard value[position] | 0x20 == letters[position] else { return false }
        }
        return value[6] == UInt8(ascii: " ")
    }
}
