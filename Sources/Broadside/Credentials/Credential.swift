package import BroadsideAPNs
package import BroadsideSupport
package import BroadsideTLS
internal import Glibc

/// Credential of the sender, of exactly one kind, read and checked.
package enum Credential: Sendable {
    /// Key that signs provider tokens.
    case key(SigningKey, keyID: String, teamID: String)
    /// Provider token that another program makes: in a file that may be replaced, or from a
    /// command.
    case suppliedToken(ExternalProviderToken)
    /// Client certificate for the handshake; requests have no `authorization`.
    case certificate(TLSIdentity, CertificateScope)

    /// A warning appears if a certificate expires within this time, in seconds.
    private static let expiryNoticeSeconds: Int64 = 30 * 86_400

    /// Reads the files that the options name, or runs their command.
    ///
    /// - Parameters:
    ///   - options: Options with one credential.
    ///   - warnings: Receives likely mistakes.
    ///   - printed: Output of the options' command; nil: the command is run.
    package static func read(
        _ options: SendOptions, warnings: inout [String], printed: SecretBytes? = nil
    ) throws(BroadsideError) -> Credential {
        try Clock.checkThatItIsSet()
        let kinds = [
            ("auth-key", options.heldKey == nil ? options.authKey : ""),
            ("auth-key-command", options.authKeyCommand),
            ("auth-token-file", options.authTokenFile),
            ("auth-token-command", options.authTokenCommand),
            ("certificate", options.certificate),
        ].filter { $0.1 != nil }.map { "--\($0.0)" }
        if HostedRun.current == nil { ProcessMemory.keepToItself() }
        guard kinds.count <= 1 else {
            throw .request(
                "\(kinds.joined(separator: " and ")) exclude each other: use one of "
                    + "them")
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
        let nowSeconds = Clock.now().wallMilliseconds / 1000
        if let path = options.authTokenFile {
            return .suppliedToken(
                try ExternalProviderToken.read(
                    path, nowSeconds: nowSeconds, warnings: &warnings))
        }
        if let command = options.authTokenCommand {
            return .suppliedToken(
                try ExternalProviderToken.run(
                    command, printed: printed, nowSeconds: nowSeconds, warnings: &warnings))
        }
        return try readKey(options, printed, &warnings)
    }

    /// Refuses options that belong to another kind of credential, because ignoring them could hide
    /// a mistake.
    private static func refuseStrangers(
        _ options: SendOptions, kind: String
    ) throws(BroadsideError) {
        let keys = ["--auth-key", "--auth-key-command"]
        let companions: [(name: String, value: String?, kinds: [String])] = [
            ("key-id", options.keyID, keys), ("team-id", options.teamID, keys),
            ("private-key", options.privateKey, ["--certificate"]),
            ("passphrase-file", options.passphraseFile, ["--certificate"]),
        ]
        for companion in companions
        where companion.value != nil && !companion.kinds.contains(kind) {
            throw .usage(
                companion.name, "belongs to \(companion.kinds[0]), not to \(kind): remove it")
        }
    }

    private static func readKey(
        _ options: SendOptions, _ printed: SecretBytes?, _ warnings: inout [String]
    ) throws(BroadsideError) -> Credential {
        guard let keyID = options.keyID else {
            throw .usage("key-id", "is missing: Apple shows it beside the key (10 characters)")
        }
        guard let teamID = options.teamID else {
            throw .usage(
                "team-id", "is missing: Apple shows it in the membership details (10 characters)")
        }
        for (name, value) in [("key-id", keyID), ("team-id", teamID)]
        where !ProviderTokenClaims.isIdentifier(value) {
            throw .usage(
                name,
                "'\(wordExcerpt(value))' is not 10 capital letters and digits: copy it from Apple")
        }
        if let key = options.heldKey {
            try checkThatItSigns(key, option: "auth-key")
            return .key(key, keyID: keyID, teamID: teamID)
        }
        guard let source = KeySource(options) else {
            preconditionFailure("the caller has seen a key's option")
        }
        if let warning = sameIDWarning(keyID: keyID, teamID: teamID) { warnings.append(warning) }
        if let path = source.path, let named = keyIDInName(path), named != keyID {
            guard named != teamID else {
                throw .usage(
                    "key-id",
                    "\(keyID) and --team-id \(teamID) seem to be swapped: the "
                        + "file name of --auth-key \(path) says key ID \(named)")
            }
            warnings.append(
                "the file name of --auth-key \(path) says key ID \(named), but "
                    + "--key-id says \(keyID): one of them is wrong")
        }
        if let path = source.path, let use = otherUse(path) {
            warnings.append(
                "by its file name, --auth-key \(path) is a key for \(use), which APNs refuses: name an "
                    + "APNs key, AuthKey_XXXXXXXXXX.p8")
        }
        let key = try readKey(source, printed, &warnings)
        try checkThatItSigns(key, option: source.option)
        return .key(key, keyID: keyID, teamID: teamID)
    }

    private static func checkThatItSigns(
        _ key: SigningKey, option: String
    ) throws(BroadsideError) {
        do throws(TLSError) {
            try key.checkThatItSigns()
        } catch {
            throw ProviderTokenSigner.refusal(error, option: option)
        }
    }

    /// Warning about one ID that was copied twice; nil if the IDs differ. Another server than Apple's
    /// may accept any IDs.
    static func sameIDWarning(keyID: String, teamID: String) -> String? {
        keyID != teamID
            ? nil
            : "--key-id and --team-id are both \(keyID), but Apple gives a key and its team different "
                + "IDs: one of them is wrong"
    }

    /// Limit on the size of a key in any format, bytes.
    static let keyByteLimit = 1 << 16

    private static func readKey(
        _ source: KeySource, _ printed: SecretBytes?, _ warnings: inout [String]
    ) throws(BroadsideError) -> SigningKey {
        try source.check()
        switch source {
        case .file(let path):
            var text = try readSecret(
                path, option: source.option, limit: keyByteLimit, &warnings)
            return try key(taking: &text, source, "\(path): ")
        case .environment(let name):
            return try HeldKeys.key("env:\(name)") { () throws(BroadsideError) in
                guard var text = EnvironmentSecret.take(name) else {
                    throw .usage(
                        source.option,
                        "env:\(name): the variable is not set, or is empty: "
                            + "export it before you start broadside")
                }
                return try key(taking: &text, source, "env:\(name): ")
            }
        case .token(let uri):
            return try HeldKeys.key("pkcs11:\(uri)") { () throws(BroadsideError) in
                try uri.read(option: source.option, warnings: &warnings)
            }
        case .command(let command):
            var text =
                if let printed {
                    printed.copy
                } else {
                    try SecretCommand.run(command, option: source.option, limit: keyByteLimit)
                }
            return try key(taking: &text, source, "")
        }
    }

    /// Parses the text of a key, and overwrites the text afterwards.
    ///
    /// - Parameter location: Prefix of error messages.
    private static func key(
        taking text: inout [UInt8], _ source: KeySource, _ location: String
    ) throws(BroadsideError) -> SigningKey {
        defer { text.cleanse() }
        do {
            return try SigningKey(pem: text)
        } catch {
            guard source.path == nil else {
                let advice =
                    error.code == .keyIsPKCS12
                    ? ": name it with --certificate, in place of --\(source.option)" : ""
                throw .usage(source.option, "\(location)\(error.message)\(advice)")
            }
            // Omits the message's advice about files, which does not apply here.
            let problem = (error.message.parts(atFirst: ":")?.before ?? error.message[...])
                .replacing("the file contains", with: "it contains")
            let (remedy, file) =
                error.code == .passphraseMissing
                ? ("remove it with 'openssl pkey -in FILE -out NEWFILE', then ", "NEWFILE")
                : ("", "the .p8 file")
            throw .usage(
                source.option,
                (location.isEmpty ? "printed " : location) + "no usable key: \(problem): \(remedy)"
                    + (location.isEmpty
                        ? "have it print the text of \(file)"
                        : "put the text of \(file) there"))
        }
    }

    /// Key ID in the name that Apple gives a key file, `AuthKey_ABC123DEFG.p8`; nil for other
    /// names. Browsers and file managers name copies `AuthKey_ABC123DEFG (1).p8`.
    static func keyIDInName(_ path: String) -> String? {
        let name = path.pieces(at: "/").last ?? ""
        guard name.hasPrefix("AuthKey_"), name.hasSuffix(".p8") else { return nil }
        let rest = name.dropFirst(8).dropLast(3)
        let identifier = String(rest.prefix(10))
        guard ProviderTokenClaims.isIdentifier(identifier) else { return nil }
        return rest.count == 10 || rest.dropFirst(10).first == " " ? identifier : nil
    }

    /// What another key from Apple is for, by the name that Apple gives its file; nil for other
    /// names.
    private static func otherUse(_ path: String) -> String? {
        let name = path.pieces(at: "/").last ?? ""
        guard name.hasSuffix(".p8") else { return nil }
        if name.hasPrefix("SubscriptionKey_") { return "in-app purchases" }
        return name.hasPrefix("ApiKey_") ? "App Store Connect" : nil
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
            passphrase = Array(text[text.textStart...].prefix { $0 != 0x0a && $0 != 0x0d })
            if text.contains(0) {
                throw .usage("passphrase-file", "\(path): contains a NUL byte: write plain text")
            }
        }
        let identity: TLSIdentity
        let leaf: Certificate
        let others: [Certificate]
        do {
            identity = try TLSIdentity.read(
                certificate: file, key: key, passphrase: passphrase)
            leaf = try identity.leaf
            others = try identity.others
        } catch let error as TLSIdentity.ReadingError {
            let location =
                error.part == .privateKey
                ? "--private-key \(options.privateKey ?? "")" : "--certificate \(path)"
            throw .request("\(location): \(certificateMessage(error.error, isAlone: isAlone))")
        } catch {
            throw .usage("certificate", "\(path): \(error)")
        }
        try checkThatAlone(leaf, others, path: path)
        try checkValidity(leaf, path: path, &warnings)
        return .certificate(identity, try scope(of: leaf, path: path))
    }

    private static func certificateMessage(_ error: TLSError, isAlone: Bool) -> String {
        switch error.code {
        case .keyUnreadable where isAlone:
            "it contains no private key: add --private-key FILE, or use a file "
                + "that contains both"
        case .passphraseMissing:
            "the private key is protected by a passphrase: add --passphrase-file FILE"
        case .passphraseWrong: "\(error.message): check --passphrase-file"
        case .keyTwice: "\(error.message): leave --private-key out"
        case .keyIsPKCS12:
            "\(error.message): name it with --certificate, and leave --private-key out. If it has "
                + "no certificate, write its key to NEWFILE with '\(TLSIdentity.keyExtraction)' and "
                + "name NEWFILE with --private-key"
        case .certificateFormat: "\(error.message), and name its key with --private-key"
        default: error.message
        }
    }

    /// Refuses a file with the certificates of several identities. Which of them OpenSSL uses
    /// depends on their order, so the certificate might be that of another app.
    private static func checkThatAlone(
        _ leaf: Certificate, _ others: [Certificate], path: String
    ) throws(BroadsideError) {
        let others = others.filter { $0.der != leaf.der && isIssuedToDeveloper($0) }
        guard let other = others.first else { return }
        let names = [leaf, other].map { certificate in
            let name =
                certificate.subjectAttribute(CertificateScope.commonNameAttribute)
                ?? certificate.subject
            return "'\(printable(name))' (valid until \(certificate.lastDay))"
        }
        let more = others.count == 1 ? "" : " and \(others.count - 1) more"
        throw .usage(
            "certificate",
            "\(path): contains certificates of several identities: \(names[0]), \(names[1])\(more): "
                + "export only the one for this campaign, with its key")
    }

    /// Whether Apple issued a certificate to a developer, so that it is not an authority's.
    private static func isIssuedToDeveloper(_ certificate: Certificate) -> Bool {
        let extensions = [
            CertificateScope.developmentExtension, CertificateScope.productionExtension,
            CertificateScope.topicsExtension,
        ]
        return certificate.subjectAttribute(CertificateScope.userIDAttribute) != nil
            || extensions.contains { certificate.extensionValue($0) != nil }
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
                "\(path): not valid before \(leaf.firstDay): check this machine's clock")
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
        let commonName = leaf.subjectAttribute(CertificateScope.commonNameAttribute)
        if let commonName, CertificateScope.signsApps(commonName: commonName) {
            throw .usage(
                "certificate",
                "\(path): '\(commonName)' signs apps, and APNs refuses it: get a certificate for "
                    + "push notifications from Apple")
        }
        let scope = CertificateScope(
            topicsExtension: leaf.extensionValue(CertificateScope.topicsExtension),
            voipExtension: leaf.extensionValue(CertificateScope.voipExtension),
            userID: leaf.subjectAttribute(CertificateScope.userIDAttribute),
            commonName: commonName, environments: environments)
        guard let scope else {
            throw .usage(
                "certificate",
                "\(path): its list of topics can't be read: get a new "
                    + "certificate from Apple"
            )
        }
        return scope
    }
}
