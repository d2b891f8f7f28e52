internal import BroadsideAPNs
internal import BroadsideSupport
internal import BroadsideTLS

extension StateDirectory {
    /// Returns the endpoint's own credentials, and the credentials that it accepts from clients.
    func credentials(
        environment: Endpoints.Environment = .production
    ) throws(SimulatorError) -> EndpointCredentials {
        let owners = try topicOwners()
        var keys = [
            try key(keyID, team: teamID, publicHalf: "AuthKey_\(keyID).pub.pem")
        ]
        keys[0].topics = owners.topics(of: teamID)
        for other in config.other_keys ?? [] {
            var key = try key(other.key_id, team: other.team_id, publicHalf: other.public_key)
            key.environment = other.environment
            key.topics =
                other.topics.map { $0.map { Array($0.utf8) } } ?? owners.topics(of: other.team_id)
            key.relatedKeyID = other.related_key_id
            keys.append(key)
        }
        let revoked = (config.revoked ?? []).compactMap { digits in
            TokenTrust.bytes(ofDigits: Array(digits.utf8).span.rawBytes)
        }
        let identity = try serverIdentity()
        let authority = try PrivateFile.read(file("ca.pem"), option: "state")
        do throws(TLSError) {
            var configuration = ServerConfiguration(identity: identity)
            configuration.clientCertificates = .requested(authorities: authority)
            configuration.issuesTickets = true
            return EndpointCredentials(
                tls: try TLSContext(server: configuration), keys: keys,
                topics: TopicTable(
                    app: topic, otherApp: config.other_topic, further: owners.further),
                certificates: ClientCertificateRule(revoked: revoked, environment: environment))
        } catch {
            throw SimulatorError("--state \(path): \(error.description)", exitCode: 2)
        }
    }

    /// Returns the team of each topic. `topic` and `other_topic` belong to the first team. Each
    /// topic in `other_keys` belongs to the team of its key.
    private func topicOwners() throws(SimulatorError) -> TopicOwners {
        var owners = TopicOwners(team: teamID, topics: [topic, config.other_topic])
        for other in config.other_keys ?? [] {
            for topic in other.topics ?? [] where !owners.add(topic, team: other.team_id) {
                throw SimulatorError(
                    "--state \(path)/config.json: \(ForeignText.escaped(topic)) belongs to another team "
                        + "than the key \(ForeignText.escaped(other.key_id)): remove the topic "
                        + "from this key",
                    exitCode: 2)
            }
        }
        return owners
    }

    private func serverIdentity() throws(SimulatorError) -> TLSIdentity {
        TLSIdentity(
            certificateChain: try PrivateFile.read(file("server.pem"), option: "state"),
            privateKey: try PrivateFile.read(file("server.key"), option: "state"))
    }

    /// Returns the TLS context of the legacy gateway and the feedback service. A client certificate
    /// is mandatory. There is no ALPN, because these protocols are older than it.
    func legacyContext() throws(SimulatorError) -> TLSContext {
        let identity = try serverIdentity()
        let authority = try PrivateFile.read(file("ca.pem"), option: "state")
        do throws(TLSError) {
            var configuration = ServerConfiguration(identity: identity)
            configuration.clientCertificates = .required(authorities: authority)
            configuration.applicationProtocols = []
            return try TLSContext(server: configuration)
        } catch {
            throw SimulatorError("--state \(path): \(error.description)", exitCode: 2)
        }
    }

    private func key(
        _ keyID: String, team: String, publicHalf: String
    ) throws(SimulatorError) -> ProviderKey {
        let pem = try PrivateFile.read(file(publicHalf), option: "state")
        do throws(TLSError) {
            let key = try VerifyingKey(pem: pem)
            return ProviderKey(keyID: keyID, teamID: team) { message, signature in
                key.verifies(signature, over: message)
            }
        } catch {
            throw SimulatorError("--state \(file(publicHalf)): \(error.description)", exitCode: 2)
        }
    }
}
