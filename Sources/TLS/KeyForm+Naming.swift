extension KeyForm {
    /// Returns the error for a file without a readable private key. Its message states what the
    /// file contains instead, and the remedy.
    ///
    /// - Parameter hasPassphrase: Whether a passphrase was given.
    static func error(noKeyIn file: [UInt8], hasPassphrase: Bool) -> TLSError {
        var text = unwrapped(file) ?? file
        defer { text.cleanse() }
        func unreadable(_ message: String) -> TLSError { TLSError(.keyUnreadable, message) }
        func holds(_ mark: String) -> Bool { contains(mark, text) }
        if text.allSatisfy({ $0 <= 0x20 }) {
            return unreadable("the file is empty: name the key's file")
        }
        if isServiceAccount(file) {
            return unreadable(
                "this is a Firebase or Google service account, which APNs does not know: make an APNs "
                    + "key at developer.apple.com and name its .p8 file")
        }
        if holds("ENCRYPTED") {
            return hasPassphrase
                ? TLSError(.passphraseWrong, "the passphrase does not open the private key")
                : TLSError(
                    .passphraseMissing,
                    "the private key is protected by a passphrase: remove the passphrase with "
                        + "'openssl pkey -in FILE -out NEWFILE'")
        }
        if holds("OPENSSH PRIVATE KEY") {
            return unreadable("this is an SSH key: name the unchanged .p8 file from Apple")
        }
        if holds("PRIVATE KEY-----") {
            return unreadable("the private key is damaged: save the file again, unchanged")
        }
        if isPKCS12(text) {
            return TLSError(.keyIsPKCS12, "this is a PKCS#12 file")
        }
        let names = [
            ("CERTIFICATE REQUEST", "certificate request"), ("CERTIFICATE", "certificate"),
            ("PUBLIC KEY", "public key"),
        ]
        let found = labels(text)
        for (label, name) in names where found.contains(where: { $0.hasSuffix(label) }) {
            return unreadable(
                "the file contains a \(name) instead of a private key: name the key's file")
        }
        if !found.isEmpty || holds("-----BEGIN ") {
            return unreadable(
                "the file contains no private key (-----BEGIN PRIVATE KEY-----): "
                    + "name the key's file")
        }
        if isToken(text) {
            return unreadable(
                "this is a provider token, not the key that signs it: name the .p8 file")
        }
        return unreadable(
            "this is not a private key in PEM form (-----BEGIN PRIVATE KEY-----): "
                + "name the unchanged .p8 file from Apple")
    }

    /// The error for a private key whose cipher is in OpenSSL's legacy provider, which is not
    /// installed.
    static let cipherMissing = TLSError(
        .keyCipherMissing,
        "the private key is encrypted with a cipher of OpenSSL's legacy provider, which is not "
            + "installed here: on a machine that has the provider, convert the key with 'openssl "
            + "pkcs8 -topk8 -provider legacy -provider default -in FILE -out NEWFILE' and name "
            + "NEWFILE with --private-key")

    /// Returns an error with the remedy if a file contains no certificate but other recognized
    /// contents, such as a private key. Otherwise returns nil.
    static func error(noCertificateIn file: [UInt8]) -> TLSError? {
        let text = unwrapped(file) ?? file
        func error(_ message: String) -> TLSError { TLSError(.certificateUnreadable, message) }
        if isServiceAccount(file) {
            return error(
                "this is a Firebase or Google service account, which APNs does not know: use a "
                    + "certificate or a key from Apple")
        }
        let found = labels(text)
        if found.contains("PKCS7") { return certificateBundle("") }
        if found.contains("TRUSTED CERTIFICATE") {
            return error(
                "the certificate is in OpenSSL's own form (TRUSTED CERTIFICATE): convert it with "
                    + "'openssl x509 -in FILE -out NEWFILE' and name NEWFILE")
        }
        if found.contains(where: { $0.hasSuffix("PRIVATE KEY") }) {
            return error(
                "the file contains a private key and no certificate: name the "
                    + "certificate's file, or for an APNs key (.p8) use --auth-key")
        }
        if found.contains(where: { $0.hasSuffix("CERTIFICATE REQUEST") }) {
            return error(
                "this is a certificate request: name the certificate that Apple made from it")
        }
        return found.contains { $0.hasSuffix("PUBLIC KEY") }
            ? error("this is a public key: name the certificate's file") : nil
    }

    /// The error for a PKCS#7 file (.p7b).
    ///
    /// - Parameter options: Options of `openssl pkcs7` that the file needs; each begins with a blank.
    static func certificateBundle(_ options: String) -> TLSError {
        TLSError(
            .certificateUnreadable,
            "this is a PKCS#7 file: convert it with 'openssl pkcs7 -print_certs\(options) -in FILE "
                + "-out NEWFILE' and name NEWFILE")
    }

    /// Returns whether a file appears to be PKCS#7 in DER, judged by its type (signedData).
    static func isPKCS7(_ file: [UInt8]) -> Bool {
        isDER(file)
            && file.prefix(16).contains(
                sequence: [0x06, 0x09, 0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 0x01, 0x07, 0x02])
    }

    /// Returns whether a file appears to be PKCS#12 in DER, judged by its first elements.
    static func isPKCS12(_ file: [UInt8]) -> Bool {
        isDER(file) && file.prefix(12).contains(sequence: [0x02, 0x01, 0x03, 0x30])
    }

    /// Returns whether a file is the JSON file of a Google service account.
    static func isServiceAccount(_ file: [UInt8]) -> Bool {
        file.first { $0 > 0x20 } == UInt8(ascii: "{")
            && (contains("\"service_account\"", file) || contains("\"private_key_id\"", file))
    }

    private static func isToken(_ text: [UInt8]) -> Bool {
        let token = text.drop { $0 <= 0x20 }
        return token.starts(with: "eyJ".utf8) && token.count { $0 == UInt8(ascii: ".") } == 2
    }

    private static func contains(_ mark: String, _ text: [UInt8]) -> Bool {
        text[...].contains(sequence: Array(mark.utf8))
    }
}

extension ArraySlice<UInt8> {
    /// Returns whether the array contains a sequence of bytes.
    fileprivate func contains(sequence mark: [UInt8]) -> Bool {
        guard let first = mark.first else { return true }
        var rest = self
        while let start = rest.firstIndex(of: first) {
            if rest[start...].starts(with: mark) { return true }
            rest = rest[(start + 1)...]
        }
        return false
    }
}
