internal import BroadsideAPNs
internal import BroadsidePrimitives
internal import BroadsideRing
internal import BroadsideSupport

/// A key that may sign provider tokens.
struct ProviderKey: Sendable {
    let keyID: String
    let teamID: String
    /// The environment in which the key is valid; nil for both.
    var environment: Endpoints.Environment?
    /// The topics for which the key is valid, without suffixes; nil for all topics of the team.
    var topics: [[UInt8]]?
    /// The ID of a key that may replace this one on a connection; nil for none.
    var relatedKeyID: String?
    /// Verifies a signature, raw (64 bytes) or DER, over a message.
    let verifies: @Sendable (_ message: [UInt8], _ signature: [UInt8]) -> Bool
}

/// A provider token and the result of its verification.
struct CheckedToken: Sendable {
    /// The token in compact form.
    let text: [UInt8]
    /// A hash that identifies the token.
    let fingerprint: UInt64
    /// The index of the key that signed the token; nil if the token is invalid.
    let key: Int?
    let issuedAtUnixSeconds: UInt64
    /// True if `iat` is a string instead of a number.
    var hasTextualIssueTime = false
}

/// Verifies provider tokens and caches the results, so that each token is verified once. Belongs to
/// one thread.
struct ProviderTokenVerifier {
    private let keys: [ProviderKey]
    private var cache: [CheckedToken] = []
    private var nextVictim = 0

    init(keys: [ProviderKey]) {
        self.keys = keys
        cache.reserveCapacity(SimulatorLimits.cachedTokens)
    }

    func key(_ index: Int) -> ProviderKey { keys[index] }

    /// Returns the token with its verification result.
    mutating func check(_ token: RawSpan) -> CheckedToken {
        for known in cache where token.equals(known.text) { return known }
        let checked = verify(Array(token))
        if cache.count < SimulatorLimits.cachedTokens {
            cache.append(checked)
        } else {
            cache[nextVictim] = checked
            nextVictim = (nextVictim + 1) % SimulatorLimits.cachedTokens
        }
        assert(cache.count <= SimulatorLimits.cachedTokens, "the oldest tokens are forgotten")
        return checked
    }

    private func verify(_ token: [UInt8]) -> CheckedToken {
        let fingerprint = FNV1aHash.hash(token)
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

/// The authentication state of one connection.
///
/// Apple, "Establishing a token-based connection to APNs": the first request binds a connection to
/// its team and key. If the client has a certificate, the `authorization` header is ignored.
struct ConnectionCredential {
    /// True if a valid client certificate was presented.
    let hasCertificate: Bool
    /// The client's address; nil if it is unknown.
    let address: SocketAddress?
    /// The hash of the last request's token, valid or not; nil if that request had none.
    private(set) var presentedFingerprint: UInt64?
    /// The key of the first accepted token.
    private var boundKey: Int?
    /// The last accepted token. It is recognized without a lookup.
    private var last: CheckedToken?
    /// The accepted token before the last one. Requests in flight may still use it.
    private var previous: CheckedToken?

    /// The hash of the last accepted token; nil if there is none.
    var lastFingerprint: UInt64? { last?.fingerprint }
    /// True if the `iat` of the last token is a string instead of a number.
    var hasTextualIssueTime: Bool { last?.hasTextualIssueTime ?? false }

    init(hasCertificate: Bool, address: SocketAddress? = nil) {
        self.hasCertificate = hasCertificate
        self.address = address
    }

    /// Returns the reason for refusing a request, or nil if its credential is valid.
    mutating func refusal(
        authorization: RawSpan?, verifier: inout ProviderTokenVerifier,
        environment: Endpoints.Environment = .production, nowUnixSeconds: UInt64
    ) -> Reason? {
        if hasCertificate { return nil }
        presentedFingerprint = nil
        guard let value = authorization else { return .missingProviderToken }
        guard value.byteCount > 7, Self.isBearer(value) else { return .invalidProviderToken }
        let token = value.extracting(7...)
        if let last, token.equals(last.text) {
            presentedFingerprint = last.fingerprint
            return Self.ageRefusal(last, nowUnixSeconds: nowUnixSeconds)
        }
        let checked = verifier.check(token)
        presentedFingerprint = checked.fingerprint
        guard let key = checked.key else { return .invalidProviderToken }
        if let reason = Self.ageRefusal(checked, nowUnixSeconds: nowUnixSeconds) { return reason }
        let presented = verifier.key(key)
        if let scope = presented.environment, scope != environment {
            return .badEnvironmentKeyIDInToken
        }
        if let boundKey, boundKey != key {
            // A connection is bound to one team. Within the team, it is bound to one key, or to the
            // key that is related to it.
            let bound = verifier.key(boundKey)
            guard bound.teamID == presented.teamID else { return .invalidProviderToken }
            guard bound.relatedKeyID == presented.keyID else { return .unrelatedKeyIDInToken }
        }
        if let reason = renewalRefusal(checked) { return reason }
        if boundKey == nil { boundKey = key }
        return nil
    }

    /// Checks the rule "Refresh your token no more than once every 20 minutes". The check compares
    /// the issue times of the tokens, so the arrival times of requests do not matter.
    private mutating func renewalRefusal(_ token: CheckedToken) -> Reason? {
        if let previous, previous.text == token.text {
            swap(&self.previous, &last)
            return nil
        }
        // The last token may be the older one: requests with it may still have been on their way.
        for known in [last, previous] {
            guard let known, known.key == token.key else { continue }
            if token.issuedAtUnixSeconds < known.issuedAtUnixSeconds + Self.renewalSeconds {
                return .tooManyProviderTokenUpdates
            }
        }
        assert(last?.text != token.text, "a renewal is another token")
        previous = last
        last = token
        return nil
    }

    /// Removes the last token after a scenario or a test has made it expire. While that token is
    /// kept, its renewal would be refused as too early.
    mutating func forgetLast() {
        last = nil
        previous = nil
    }

    private static let renewalSeconds: UInt64 = 20 * 60

    /// Returns the topics of the key that signed the last accepted token; nil for all topics of its
    /// team.
    func topics(_ verifier: ProviderTokenVerifier) -> [[UInt8]]? {
        last?.key.flatMap { verifier.key($0).topics }
    }

    /// Checks the rule "APNs rejects a token whose issue time is more than one hour from the
    /// current time."
    private static func ageRefusal(_ token: CheckedToken, nowUnixSeconds: UInt64) -> Reason? {
        let hour = ProviderTokenAge.expirySeconds
        if token.issuedAtUnixSeconds + hour < nowUnixSeconds { return .expiredProviderToken }
        if token.issuedAtUnixSeconds > nowUnixSeconds + hour { return .invalidProviderToken }
        return nil
    }

    /// Returns whether the value begins with the Bearer scheme and a space. Case is ignored (RFC
    /// 9110 section 11.1).
    private static func isBearer(_ value: RawSpan) -> Bool {
        let scheme: StaticString = "bearer"
        let letters = scheme.rawBytes
        for position in 0..<6 {
            guard value[position] | 0x20 == letters[position] else { return false }
        }
        return value[6] == UInt8(ascii: " ")
    }
}
