import BroadsideAPNs
import BroadsideEngine
import BroadsideSupport
import BroadsideTLS

extension Credential {
    /// What `authorization` a run begins with, and how it is renewed.
    struct Authorization: Sendable {
        /// `bearer ...`; nil with a certificate.
        var value: [UInt8]?
        var issuedAtSeconds: UInt64 = 0
        /// Makes a new value for an issue time; nil where there is nothing to sign with.
        var sign: RunCoordinator.Signer?
    }

    /// Which rules hold for the request's headers.
    var kind: NotificationHeaders.Credential {
        switch self {
        case .key, .suppliedToken: .providerToken
        case .certificate: .certificate
        }
    }

    /// What the handshake shows.
    var identity: TLSIdentity? {
        if case .certificate(let identity, _) = self { return identity }
        return nil
    }

    /// The topic that APNs takes where a request names none.
    var onlyTopic: String? {
        if case .certificate(_, let scope) = self { return scope.onlyTopic }
        return nil
    }

    /// The topics that a certificate is for; none with a provider token.
    var topics: [String] {
        if case .certificate(_, let scope) = self { return scope.topics }
        return []
    }

    /// What it is, for people; nothing secret.
    var summary: String {
        switch self {
        case .key(let key, let keyID, let teamID):
            "signing key \(keyID) of team \(teamID)"
                + (key.isInToken
                    ? ", in a PKCS#11 token (its provider tokens are this process's own)" : "")
        case .suppliedToken(let token):
            "provider token by key \(token.claims.keyID) of team \(token.claims.teamID)"
        case .certificate(let identity, let scope):
            "certificate \((try? identity.leaf.subject) ?? "") valid until "
                + "\((try? identity.leaf.lastDay) ?? ""), topics "
                + (scope.topics.isEmpty ? "not named" : scope.topics.joined(separator: ", "))
        }
    }

    /// The `authorization` of this moment; nil with a certificate.
    ///
    /// - Parameter shiftSeconds: Dates a token that is made here otherwise.
    func freshAuthorization(shiftSeconds: Int64 = 0) throws(BroadsideError) -> [UInt8]? {
        switch self {
        case .certificate: return nil
        case .suppliedToken(let token): return token.authorization
        case .key(let key, let keyID, let teamID):
            let signer = ProviderTokenSigner(key: key, keyID: keyID, teamID: teamID)
            let now = Clock.now().wallMilliseconds / 1000
            return try signer.token(nowSeconds: now, shiftSeconds: shiftSeconds).value
        }
    }

    /// Holds the campaign against what the certificate is for, so that APNs need not.
    func check(_ headers: NotificationHeaders, _ options: SendOptions) throws(BroadsideError) {
        guard case .certificate(_, let scope) = self else { return }
        if let problem = scope.topicProblem(headers.topic, pushType: headers.pushType) {
            throw .usage("topic", problem.message)
        }
        // What environment another endpoint has is its own affair.
        if options.endpoint == nil, !scope.environments.isEmpty,
            !scope.environments.contains(options.environment)
        {
            let other = scope.environments.map(\.rawValue).joined(separator: " and ")
            throw .usage(
                "environment",
                "\(options.environment.rawValue): the certificate is for \(other) "
                    + "only: use --environment \(other), or another certificate")
        }
    }

    /// The provider token of a run.
    ///
    /// - Parameter nowSeconds: Seconds since 1970.
    func authorization(nowSeconds: UInt64) throws(BroadsideError) -> Authorization {
        switch self {
        case .certificate:
            return Authorization()
        case .suppliedToken(let token):
            return Authorization(
                value: token.authorization, issuedAtSeconds: token.claims.issuedAtUnixSeconds)
        case .key(let key, let keyID, let teamID):
            let signer = ProviderTokenSigner(key: key, keyID: keyID, teamID: teamID)
            let token = try signer.token(nowSeconds: nowSeconds)
            return Authorization(
                value: token.value, issuedAtSeconds: token.issuedAt,
                sign: { signer.sign(issuedAtSeconds: $0) })
        }
    }

    /// Whether a run may go on with this one in another's place: the campaign stays the same.
    func checkSuccession(
        of other: Credential, headers: NotificationHeaders
    ) throws(BroadsideError) {
        switch (other, self) {
        case (.suppliedToken(let before), .suppliedToken(let token)):
            try token.checkTeam(of: before)
        case (.certificate, .certificate):
            guard headers.topic != nil || onlyTopic == other.onlyTopic else {
                throw .usage(
                    "certificate",
                    "is a new one for \(onlyTopic ?? "several topics"), "
                        + "but the campaign is for \(other.onlyTopic ?? "none"): give --topic")
            }
        default: break
        }
    }
}
