internal import CBroadsideOpenSSL

/// The content of a certificate to be issued.
@safe struct CertificateRequest {
    /// An extension, given by OpenSSL's name and text, or by object identifier and DER.
    enum Extension {
        case named(String, String)
        case der(String, [UInt8])
    }

    var subject: [(name: String, value: String)]
    var validity: CertificateValidity
    var extensions: [Extension] = []

    init(subject: [(name: String, value: String)], validity: CertificateValidity) {
        self.subject = subject
        self.validity = validity
    }

    /// Creates and signs a version 3 certificate, which is self-signed if `issuer` is nil.
    func issue(
        for key: PrivateKey, signedBy issuer: (certificate: Certificate, key: PrivateKey)?
    ) throws(TLSError) -> Certificate {
        ErrorQueue.clear()
        // SAFETY: the reference from X509_new goes to `certificate`, which is returned and
        // therefore outlives `pointer`. OpenSSL copies names, texts, times and keys; values
        // returned by X509_get_ functions belong to the certificate.
        guard let certificate = unsafe Certificate(owningIfAny: X509_new()) else {
            throw ErrorQueue.error("make a certificate")
        }
        let pointer = unsafe certificate.pointer
        let issuerCertificate = issuer?.certificate ?? certificate
        // 64 random bits, positive: CA/Browser Forum Baseline Requirements 7.1.
        let serial = randomBytes(8).reduce(UInt64(0)) { $0 << 8 | UInt64($1) } >> 1
        let subjectName = unsafe X509_get_subject_name(pointer)
        for attribute in subject {
            // MBSTRING_UTF8; a count of -1 includes the whole text, position -1 appends.
            guard
                unsafe X509_NAME_add_entry_by_txt(
                    subjectName, attribute.name, 0x1000, attribute.value, -1, -1, 0) == 1
            else { throw ErrorQueue.error("put '\(attribute.name)' into a certificate") }
        }
        guard unsafe X509_set_version(pointer, 2) == 1,
            unsafe ASN1_INTEGER_set_uint64(X509_get_serialNumber(pointer), max(1, serial)) == 1,
            unsafe X509_gmtime_adj(X509_getm_notBefore(pointer), validity.from) != nil,
            unsafe X509_gmtime_adj(X509_getm_notAfter(pointer), validity.until) != nil,
            unsafe X509_set_issuer_name(
                pointer, X509_get_subject_name(issuerCertificate.pointer)) == 1,
            unsafe X509_set_pubkey(pointer, key.pointer) == 1
        else { throw ErrorQueue.error("make a certificate") }
        for entry in extensions { try add(entry, to: certificate, issuer: issuerCertificate) }
        guard unsafe X509_sign(pointer, (issuer?.key ?? key).pointer, EVP_sha256()) > 0 else {
            throw ErrorQueue.error("sign a certificate")
        }
        return certificate
    }

    private func add(
        _ entry: Extension, to certificate: Certificate, issuer: Certificate
    ) throws(TLSError) {
        let made: OpaquePointer?
        let label: String
        switch entry {
        case .named(let name, let text):
            label = name
            // SAFETY: the context is valid for both calls; the certificates, which are parameters,
            // outlive it, and OpenSSL reads the texts up to the NUL added by Swift.
            var context = unsafe X509V3_CTX()
            unsafe X509V3_set_ctx(&context, issuer.pointer, certificate.pointer, nil, nil, 0)
            unsafe made = X509V3_EXT_conf_nid(nil, &context, OBJ_txt2nid(name), text)
        case .der(let identifier, let der):
            label = identifier
            unsafe made = Self.rawExtension(identifier, der)
        }
        guard let made = unsafe OpenSSLObject(made, freedBy: X509_EXTENSION_free) else {
            throw ErrorQueue.error("make the extension \(label)")
        }
        // SAFETY: X509_add_ext adds a copy; `made` frees the extension itself with the matching
        // function.
        guard made.lend({ unsafe X509_add_ext(certificate.pointer, $0, -1) }) == 1 else {
            throw ErrorQueue.error("add the extension \(label)")
        }
    }

    /// Creates a non-critical extension with the given content.
    private static func rawExtension(_ identifier: String, _ der: [UInt8]) -> OpaquePointer? {
        guard let object = OpenSSLObject(identifier: identifier) else { return nil }
        // SAFETY: `content` is freed when the function ends; both calls copy their arguments, and
        // `der` has the byte count passed.
        guard let content = unsafe ASN1_STRING_type_new(V_ASN1_OCTET_STRING) else { return nil }
        defer { unsafe ASN1_STRING_free(content) }
        guard unsafe ASN1_STRING_set(content, der, Int32(der.count)) == 1 else { return nil }
        return object.lend { unsafe X509_EXTENSION_create_by_OBJ(nil, $0, 0, content) }
    }
}
