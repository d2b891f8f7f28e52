package import BroadsideAPNs
package import BroadsideEngine
package import BroadsideSupport
import BroadsideTLS

extension Credential {
    /// Initial value of `authorization` in a run, and the function that renews it.
    package struct Authorization: Sendable {
        /// Value of the header field, `bearer ...`; nil with a certificate.
        package var value: [UInt8]?
        package var issuedAtSeconds: UInt64 = 0
        /// ID of the key of a token that another program made, which may change during a run; nil
        /// otherwise.
        package var keyID: String?
        /// Function that signs a value for an issue time; nil if there is no key.
        package var sign: RunCoordinator.Signer?
    }

    /// Kind of the credential, which determines the rules for request headers.
    package var kind: NotificationHeaders.Credential {
        switch self {
        case .key, .suppliedToken: .providerToken
        case .certificate: .certificate
        }
    }

    /// Team that provider tokens name; nil with a certificate.
    package var teamID: String? {
        switch self {
        case .key(_, _, let teamID): teamID
        case .suppliedToken(let token): token.claims.teamID
        case .certificate: nil
        }
    }

    /// TLS identity for the handshake; nil with a provider token.
    var identity: TLSIdentity? {
        if case .certificate(let identity, _) = self { return identity }
        return nil
    }

    /// Topic that APNs applies to requests without a topic; nil if there is none.
    var onlyTopic: String? {
        if case .certificate(_, let scope) = self { return scope.onlyTopic }
        return nil
    }

    /// Topics of a certificate; empty with a provider token.
    var topics: [String] {
        if case .certificate(_, let scope) = self { return scope.topics }
        return []
    }

    /// Human-readable description, without secrets.
    package var summary: String {
        switch self {
        case .key(let key, let keyID, let teamID):
            "signing key \(keyID) of team \(teamID)"
                + (key.isInToken
                    ? ", in a PKCS#11 token (each process signs different provider tokens)" : "")
        case .suppliedToken(let token):
            "provider token by key \(token.claims.keyID) of team \(token.claims.teamID)"
        case .certificate(let identity, let scope):
            "certificate \((try? identity.leaf.subject) ?? "") valid until "
                + "\((try? identity.leaf.lastDay) ?? ""), topics "
                + (scope.topics.isEmpty ? "not named" : scope.topics.joined(separator: ", "))
        }
    }

    /// Current value of `authorization`; nil with a certificate.
    ///
    /// - Parameter shiftSeconds: Seconds to add to the issue time of a token that this process
    ///   signs.
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

    /// Checks that the certificate is valid for the campaign's topic and environment. With another
    /// certificate, APNs would refuse each request.
    func check(_ headers: NotificationHeaders, _ options: SendOptions) throws(BroadsideError) {
        guard case .certificate(_, let scope) = self else { return }
        if let problem = scope.topicProblem(headers.topic, pushType: headers.pushType) {
            throw .usage("topic", problem.message)
        }
        // The environment of a server other than Apple's is unknown.
        guard let environment = options.appleEnvironment, !scope.environments.isEmpty,
            !scope.environments.contains(environment)
        else { return }
        let other = scope.environments.map(\.rawValue).joined(separator: " and ")
        guard let endpoint = options.endpoint else {
            throw .usage(
                "environment",
                "\(environment): the certificate is for \(other) only: use --environment \(other), "
                    + "or another certificate")
        }
        throw .usage(
            "endpoint",
            "\(endpoint) is Apple's \(environment), but the certificate is for \(other) only: use "
                + "--environment \(other) instead of --endpoint, or another certificate")
    }

    /// Returns the initial authorization of a run.
    ///
    /// - Parameter nowSeconds: Seconds since 1970.
    package func authorization(nowSeconds: UInt64) throws(BroadsideError) -> Authorization {
        switch self {
        case .certificate:
            return Authorization()
        case .suppliedToken(let token):
            return Authorization(
                value: token.authorization, issuedAtSeconds: token.claims.issuedAtUnixSeconds,
                keyID: token.claims.keyID)
        case .key(let key, let keyID, let teamID):
            let signer = ProviderTokenSigner(key: key, keyID: keyID, teamID: teamID)
            let token = try signer.token(nowSeconds: nowSeconds)
            return Authorization(
                value: token.value, issuedAtSeconds: token.issuedAt,
                sign: { signer.sign(issuedAtSeconds: $0) })
        }
    }

    /// Refuses this key if it has the same key ID as the accepted key, but is a different key.
    /// Apple gives each key its own ID, so this key can't be right.
    ///
    /// - Parameters:
    ///   - accepted: Credential with which APNs has accepted a notification.
    ///   - options: Options from which this credential was read.
    func checkKey(of accepted: Credential, _ options: SendOptions) throws(BroadsideError) {
        guard case .key(let key, let keyID, _) = self,
            case .key(let old, let oldID, _) = accepted, keyID == oldID,
            let text = try? key.verifyingKey.pem, let oldText = try? old.verifyingKey.pem,
            text != oldText
        else { return }
        throw .usage(
            KeySource(options)?.option ?? "auth-key",
            "gives another key now, but APNs knows the previous key by the same --key-id \(keyID): to "
                + "change the key, stop the run, then continue it with --resume, the new key and "
                + "the new key's ID")
    }

    /// Checks that a run can continue with this credential in place of another. The campaign must
    /// stay the same.
    package func checkSuccession(
        of other: Credential, headers: NotificationHeaders
    ) throws(BroadsideError) {
        switch (other, self) {
        case (.suppliedToken(let before), .suppliedToken(let token)):
            try token.checkTeam(of: before)
        case (.certificate, .certificate):
            guard headers.topic != nil || onlyTopic == other.onlyTopic else {
                throw .usage(
                    "certificate",
                    "is now for \(onlyTopic ?? "several topics"), but the "
                        + "campaign began with a certificate for "
                        + "\(other.onlyTopic ?? "several topics"): renew that certificate")
            }
        default: break
        }
    }
}
