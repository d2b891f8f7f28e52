internal import BroadsideAPNs
internal import BroadsidePrimitives
internal import BroadsideSupport
internal import BroadsideTLS
internal import Glibc

/// The directory with the certificates and keys of a simulated APNs. The simulator fills the
/// directory on first use:
///
///     ca.pem                      the authority's certificate, which clients trust
///     server.pem, server.key      for localhost, 127.0.0.1, ::1 and the names of --server-name
///     client.pem, client.key      a provider certificate with the topics extension
///     client-single.pem, .key     a provider certificate without the topics extension; its UID
///                                 is its only topic
///     client-mdm.pem, .key        a certificate for device management: its topic is mdm_topic
///     AuthKey_<key id>.p8         the key that signs provider tokens, as Apple hands it out
///     AuthKey_<key id>.pub.pem    the public key that belongs to it
///     config.json                 key_id, team_id, topic, other_topic and mdm_topic;
///                                 other_keys: further keys, each with its use;
///                                 revoked: certificates that are refused
///     other/                      credentials for tests of refusals: further keys, a revoked
///                                 certificate, a certificate for each environment alone, and a
///                                 certificate that only its name limits to development
///
/// A file is created and never replaced. If the directory has other files on its first use, the
/// start fails. If the first start is killed, the next start creates the files again. Files that could be misused have mode 0600. The simulator does not keep the
/// authority's own key, so that nothing else can be signed in the authority's name.
public struct StateDirectory: Sendable {
    /// The directory's path, as given.
    public let path: String
    private(set) var config: Config

    /// The content of `config.json`.
    struct Config: Codable, Equatable {
        /// An additional key: for tests of connections that mix keys, or added by the user.
        struct OtherKey: Codable, Equatable {
            var key_id: String
            var team_id: String
            /// The public key's PEM file, relative to the directory.
            var public_key: String
            /// A description of the key's purpose.
            var use: String?
            /// The environment in which the key is valid. If nil, the key is valid in both
            /// environments.
            var environment: Endpoints.Environment?
            /// The topics for which the key is valid, without suffixes. These topics belong to the
            /// key's team. If nil, the key is valid for all topics of the team.
            var topics: [String]?
            /// The ID of a key that may replace this one on a connection.
            var related_key_id: String?
        }

        var key_id: String
        var team_id: String
        /// The app to which every device token belongs.
        var topic: String
        /// Another app of the team. A request with its topic gets DeviceTokenNotForTopic.
        var other_topic: String
        /// The topic of device management; absent from directories of earlier versions.
        var mdm_topic: String?
        var other_keys: [OtherKey]?
        /// SHA-256 fingerprints of revoked certificates in DER, hexadecimal.
        var revoked: [String]?
    }

    /// The provider key's identifier.
    public var keyID: String { config.key_id }
    /// The team's identifier.
    public var teamID: String { config.team_id }
    /// The app's topic, to which every device token belongs.
    public var topic: String { config.topic }
    /// The file of the key that signs provider tokens.
    public var authKeyFile: String { file("AuthKey_\(keyID).p8") }

    /// The files that the directory must contain.
    var files: [String] {
        var names = [
            "ca.pem", "server.pem", "server.key", "client.pem", "client.key", "client-single.pem",
            "client-single.key", "client-mdm.pem", "client-mdm.key", "AuthKey_\(keyID).p8",
            "AuthKey_\(keyID).pub.pem", "config.json",
            "token.key", "tokens.txt", "tokens-voip.txt", "tokens-mdm.txt",
            "tokens-other-environment.txt", "tokens-other-topic.txt",
        ]
        for other in config.other_keys ?? [] {
            names += ["other/AuthKey_\(other.key_id).p8", other.public_key]
        }
        for use in ["development", "development-by-name", "production", "revoked"] {
            names += ["other/client-\(use).pem", "other/client-\(use).key"]
        }
        return names.map(file)
    }

    /// Returns the path of a file in the directory.
    public func file(_ name: String) -> String { "\(path)/\(name)" }

    /// Opens a directory, or fills an empty or missing one.
    ///
    /// - Parameters:
    ///   - path: Path of the directory.
    ///   - serverNames: Host names that the server's certificate gets besides localhost.
    public init(path: String, serverNames: [String] = []) throws(SimulatorError) {
        self.path = path
        if SystemCall.mkdir(path, 0o700) != 0, errno != EEXIST {
            throw SimulatorError(
                .file(
                    option: "state", path, errno: errno, "name a directory that can be created"))
        }
        if let information = SystemCall.status(path), information.st_mode & S_IFMT != S_IFDIR {
            throw SimulatorError(
                "--state \(path) is a file: name a directory instead",
                exitCode: 2)
        }
        if try Self.isUnfinished(path) {
            config = Config(
                key_id: Self.identifier(), team_id: Self.identifier(),
                topic: "com.example.Broadside", other_topic: "com.example.Other",
                mdm_topic: Self.managementTopic(), other_keys: nil)
            try fill(serverNames)
        } else {
            let bytes = try PrivateFile.read("\(path)/config.json", option: "state")
            guard let config = try? JSONCoding.decode(Config.self, from: Array(bytes)),
                ProviderTokenClaims.isIdentifier(config.key_id),
                ProviderTokenClaims.isIdentifier(config.team_id)
            else {
                throw SimulatorError(
                    "--state \(path)/config.json is not a configuration of the simulator: fix it, or "
                        + "remove the directory, which the next start creates again",
                    exitCode: 2)
            }
            self.config = config
            try checkNames(serverNames)
        }
    }

    /// Checks that the certificate of an earlier start has these names, because names can't be
    /// added to it.
    private func checkNames(_ names: [String]) throws(SimulatorError) {
        guard !names.isEmpty else { return }
        let chain = try PrivateFile.read(file("server.pem"), option: "state")
        let known = Set((try? Certificate.all(pem: chain))?.first?.alternativeNames ?? [])
        for name in names where !known.contains(name) {
            throw SimulatorError(
                "--server-name \(name): the certificate in \(path) does not cover this name: "
                    + "use a new directory with --state",
                exitCode: 2)
        }
    }

    /// Returns a topic of the form that Apple's certificates for device management have.
    private static func managementTopic() -> String {
        var digits = hexadecimal(randomBytes(16))
        for offset in [8, 13, 18, 23] {
            digits.insert("-", at: digits.index(digits.startIndex, offsetBy: offset))
        }
        return "com.apple.mgmt.External.\(digits)"
    }

    /// Returns ten random capital letters and digits.
    private static func identifier() -> String {
        let alphabet = Array("ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789")
        return String(randomBytes(10).map { alphabet[Int($0) % alphabet.count] })
    }

    private mutating func fill(_ serverNames: [String]) throws(SimulatorError) {
        var files: [(name: String, bytes: [UInt8], isPrivate: Bool)]
        do throws(TLSError) {
            let validity = CertificateValidity(until: 3650 * 86_400)
            let authority = try CertificateAuthority(
                commonName: "Broadside Simulator CA", validity: validity)
            let server = try authority.server(
                hosts: ["localhost"] + serverNames, addresses: ["127.0.0.1", "::1"],
                validity: validity)
            let (clients, revokedClient) = try clientIdentities(authority, validity)
            let revoked = try Certificate.all(pem: revokedClient.certificateChain)[0]
            config.revoked = [hexadecimal(sha256(revoked.der))]
            let key = try SigningKey(PrivateKey.generate())
            let publicHalf = try key.verifyingKey
            files = [
                ("ca.pem", authority.certificate.pem, false),
                ("server.pem", server.certificateChain, false),
                ("server.key", server.privateKey, true),
                ("AuthKey_\(keyID).p8", key.pem, true),
                ("AuthKey_\(keyID).pub.pem", publicHalf.pem, false),
            ]
            for (name, identity) in clients {
                files.append(("\(name).pem", identity.certificateChain, false))
                files.append(("\(name).key", identity.privateKey, true))
            }
            for other in try otherKeys() {
                config.other_keys = (config.other_keys ?? []) + [other.entry]
                files.append(("other/AuthKey_\(other.entry.key_id).p8", other.key.pem, true))
                let publicHalf = try other.key.verifyingKey
                files.append((other.entry.public_key, publicHalf.pem, false))
            }
        } catch {
            throw SimulatorError("--state \(path): \(error.description)", exitCode: 1)
        }
        assert(
            Set(files.map { file($0.name) }).isSubset(of: self.files),
            "each file is in the directory's set of files, so that nothing overwrites it")
        assert(Set(files.map(\.name)).count == files.count, "each file is made once")
        try store(files)
    }

    /// Creates the identities of clients, each with the name of its files.
    ///
    /// - Returns: All identities, and the one whose certificate is revoked.
    private func clientIdentities(
        _ authority: CertificateAuthority, _ validity: CertificateValidity
    ) throws(TLSError) -> (clients: [(name: String, identity: TLSIdentity)], revoked: TLSIdentity) {
        let topics = [
            (topic: topic, kind: "app"), (topic: "\(topic).voip", kind: "voip"),
            (topic: "\(topic).complication", kind: "complication"),
        ]
        let (development, production) = (
            CertificateScope.developmentExtension, CertificateScope.productionExtension
        )
        func client(
            _ environments: [String], kind: String = "Apple Push Services",
            isForSeveral: Bool = true
        ) throws(TLSError) -> TLSIdentity {
            var extensions = environments.map { ($0, [5, 0] as [UInt8]) }
            if isForSeveral {
                extensions.append(
                    (CertificateScope.topicsExtension, TopicsExtension.encode(topics)))
            }
            return try authority.client(
                subject: [("UID", topic), ("CN", "\(kind): \(topic)"), ("OU", teamID)],
                extensions: extensions, validity: validity)
        }
        let management = try authority.client(
            subject: [("UID", config.mdm_topic ?? ""), ("CN", "APSP"), ("OU", teamID)],
            extensions: [(production, [5, 0])], validity: validity)
        let revoked = try client([development, production])
        let byName = try client(
            [], kind: "Apple Development IOS Push Services", isForSeveral: false)
        let clients = [
            (name: "client", identity: try client([development, production])),
            ("client-single", try client([development, production], isForSeveral: false)),
            ("client-mdm", management),
            ("other/client-development", try client([development])),
            ("other/client-production", try client([production])),
            ("other/client-revoked", revoked),
            ("other/client-development-by-name", byName),
        ]
        return (clients, revoked)
    }

    /// Creates keys that a connection must not use together with the first key, or may use only in
    /// one combination.
    private func otherKeys() throws(TLSError) -> [(entry: Config.OtherKey, key: SigningKey)] {
        var keys: [(entry: Config.OtherKey, key: SigningKey)] = []
        func add(
            _ use: String, team: String? = nil, _ change: (inout Config.OtherKey) -> Void = { _ in }
        ) throws(TLSError) {
            let identifier = Self.identifier()
            var entry = Config.OtherKey(
                key_id: identifier, team_id: team ?? teamID,
                public_key: "other/AuthKey_\(identifier).pub.pem", use: use)
            change(&entry)
            keys.append((entry, try SigningKey(PrivateKey.generate())))
        }
        try add("second key of the team")
        try add("key of another team", team: Self.identifier())
        try add("key for development") { $0.environment = .development }
        try add("key for production") { $0.environment = .production }
        try add("key for the topic") { $0.topics = [config.topic] }
        try add("key related to the key for the topic") { $0.topics = [config.topic] }
        keys[4].entry.related_key_id = keys[5].entry.key_id
        keys[5].entry.related_key_id = keys[4].entry.key_id
        return keys
    }
}
