internal import BroadsideAPNs
import BroadsideSupport
import BroadsideTLS
internal import Glibc

/// How the sender proves who it is: exactly one of the kinds, read and checked.
enum Credential: Sendable {
    /// A key that provider tokens are signed with.
    case key(SigningKey, keyID: String, teamID: String)
    /// A provider token that was made elsewhere, in a file that may be replaced.
    case suppliedToken(ExternalProviderToken)
    /// A client certificate, shown in the handshake; requests carry no `authorization`.
    case certificate(TLSIdentity, CertificateScope)

    /// A certificate that ends within so many seconds is worth a word.
    private static let expiryNoticeSeconds: Int64 = 30 * 86_400

    /// Reads the files that the options name.
    static func read(
        _ options: SendOptions, warnings: inout [String]
    ) throws(BroadsideError) -> Credential {
        try Clock.checkThatItIsSet()
        let kinds = [
            ("auth-key", options.authKey), ("auth-token-file", options.authTokenFile),
            ("certificate", options.certificate),
        ].filter { $0.1 != nil }.map { "--\($0.0)" }
        ProcessMemory.keepToItself()
        guard kinds.count <= 1 else {
            throw .request("\(kinds.joined(separator: " and ")) exclude each other: give one")
        }
        guard !kinds.isEmpty else {
            throw .request(
                "no credential: add --auth-key FILE --key-id ID --team-id ID, --auth-token-file "
                    + "FILE, or --certificate FILE")
        }
        try refuseStrangers(options, kind: kinds[0])
        if let path = options.certificate {
            return try readCertificate(path, options, &warnings)
        }
        if let path = options.authTokenFile {
            return .suppliedToken(
                try ExternalProviderToken.read(
                    path, nowSeconds: Clock.now().wallMilliseconds / 1000, warnings: &warnings))
        }
        return try readKey(options, &warnings)
    }

    /// Options that belong to another kind were meant for something: better asked than ignored.
    private static func refuseStrangers(
        _ options: SendOptions, kind: String
    ) throws(BroadsideError) {
        let companions: [(name: String, value: String?, kind: String)] = [
            ("key-id", options.keyID, "--auth-key"),
            ("team-id", options.teamID, "--auth-key"),
            ("private-key", options.privateKey, "--certificate"),
            ("passphrase-file", options.passphraseFile, "--certificate"),
        ]
        for companion in companions where companion.value != nil && companion.kind != kind {
            throw .usage(
                companion.name, "goes with \(companion.kind), not with \(kind): leave it out")
        }
    }

    private static func readKey(
        _ options: SendOptions, _ warnings: inout [String]
    ) throws(BroadsideError) -> Credential {
        guard let keyID = options.keyID else {
            throw .usage("key-id", "is missing: Apple shows it beside the key, 10 characters")
        }
        guard let teamID = options.teamID else {
            throw .usage(
                "team-id", "is missing: Apple shows it as membership detail, 10 characters")
        }
        for (name, value) in [("key-id", keyID), ("team-id", teamID)]
        where !ProviderTokenClaims.isIdentifier(value) {
            throw .usage(
                name, "'\(wordExcerpt(value))' is not 10 letters and digits: copy it from Apple")
        }
        let path = options.authKey ?? ""
        if let named = keyIDInName(path), named != keyID {
            guard named != teamID else {
                throw .usage(
                    "key-id",
                    "\(keyID) and --team-id \(teamID) are exchanged: --auth-key \(path) is the "
                        + "key \(named) by its name")
            }
            warnings.append(
                "--auth-key \(path) is the key \(named) by its name, and --key-id says \(keyID): "
                    + "one of them is wrong")
        }
        var pem = try readSecret(path, option: "auth-key", limit: 1 << 16, &warnings)
        defer { pem.cleanse() }
        do {
            return .key(try SigningKey(pem: pem), keyID: keyID, teamID: teamID)
        } catch {
            throw .usage("auth-key", "\(path): \(error.message)")
        }
    }

    /// The ID in the name that Apple gives to key files, `AuthKey_ABC123DEFG.p8`.
    private static func keyIDInName(_ path: String) -> String? {
        let name = path.pieces(at: "/").last ?? ""
        guard name.hasPrefix("AuthKey_"), name.hasSuffix(".p8") else { return nil }
        let identifier = String(name.dropFirst(8).dropLast(3))
        return ProviderTokenClaims.isIdentifier(identifier) ? identifier : nil
    }

    private static func readCertificate(
        _ path: String, _ options: SendOptions, _ warnings: inout [String]
    ) throws(BroadsideError) -> Credential {
        let isAlone = options.privateKey == nil
        var file =
            isAlone
            ? try readSecret(path, option: "certificate", limit: 1 << 20, &warnings)
            : try readFile(path, option: "certificate", limit: 1 << 20)
        defer { file.cleanse() }
        var key: [UInt8]?
        defer { key?.cleanse() }
        if let path = options.privateKey {
            key = try readSecret(path, option: "private-key", limit: 1 << 20, &warnings)
        }
        var passphrase: [UInt8]?
        defer { passphrase?.cleanse() }
        if let path = options.passphraseFile {
            var text = try readSecret(path, option: "passphrase-file", limit: 4096, &warnings)
            defer { text.cleanse() }
            passphrase = Array(text.prefix { $0 != 0x0a && $0 != 0x0d })
            if text.contains(0) {
                throw .usage("passphrase-file", "\(path): holds a NUL: write plain text")
            }
        }
        let identity: TLSIdentity
        let leaf: Certificate
        do {
            identity = try TLSIdentity.read(
                certificate: file, key: key, passphrase: passphrase)
            leaf = try identity.leaf
        } catch let error as TLSIdentity.ReadingError {
            let location =
                error.part == .privateKey
                ? "--private-key \(options.privateKey ?? "")" : "--certificate \(path)"
            throw .request("\(location): \(certificateMessage(error.error, isAlone: isAlone))")
        } catch {
            throw .usage("certificate", "\(path): \(error)")
        }
        try checkValidity(leaf, path: path, &warnings)
        return .certificate(identity, try scope(of: leaf, path: path))
    }

    private static func certificateMessage(_ error: TLSError, isAlone: Bool) -> String {
        switch error.code {
        case .keyUnreadable where isAlone:
            "it holds no private key: add --private-key FILE, or use a file that holds both"
        case .passphraseMissing:
            "the private key is protected by a passphrase: add --passphrase-file FILE"
        case .passphraseWrong: "\(error.message): check --passphrase-file"
        case .keyTwice: "\(error.message): leave --private-key out"
        case .certificateFormat: "\(error.message), and give its key with --private-key"
        default: error.message
        }
    }

    private static func checkValidity(
        _ leaf: Certificate, path: String, _ warnings: inout [String]
    ) throws(BroadsideError) {
        let now = Int64(Clock.now().wallMilliseconds / 1000)
        if let end = leaf.notAfter {
            guard end > now else {
                throw .usage(
                    "certificate", "\(path): expired on \(leaf.lastDay): get a new one from Apple")
            }
            if end - now < expiryNoticeSeconds {
                let days = (end - now) / 86_400
                warnings.append(
                    "--certificate \(path) expires on \(leaf.lastDay), in "
                        + "\(days) day\(days == 1 ? "" : "s"): renew it")
            }
        }
        if let start = leaf.notBefore, start > now {
            throw .usage(
                "certificate",
                "\(path): valid only from \(leaf.firstDay) on: check this machine's "
                    + "clock")
        }
    }

    private static func scope(
        of leaf: Certificate, path: String
    ) throws(BroadsideError) -> CertificateScope {
        var environments: Set<Endpoints.Environment> = []
        if leaf.extensionValue(CertificateScope.developmentExtension) != nil {
            environments.insert(.development)
        }
        if leaf.extensionValue(CertificateScope.productionExtension) != nil {
            environments.insert(.production)
        }
        let scope = CertificateScope(
            topicsExtension: leaf.extensionValue(CertificateScope.topicsExtension),
            voipExtension: leaf.extensionValue(CertificateScope.voipExtension),
            userID: leaf.subjectAttribute(CertificateScope.userIDAttribute),
            commonName: leaf.subjectAttribute(CertificateScope.commonNameAttribute),
            environments: environments)
        guard let scope else {
            throw .usage(
                "certificate", "\(path): its list of topics can't be read: get a new one from Apple"
            )
        }
        return scope
    }
}
