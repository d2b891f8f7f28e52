internal import CBroadsideOpenSSL

/// An X.509 certificate.
@safe public final class Certificate: Sendable {
    // SAFETY: an X509 to which this object holds a reference, released in `deinit`. It is not
    // modified after its creation, and OpenSSL locks its internal caches.
    nonisolated(unsafe) let pointer: OpaquePointer

    /// Takes ownership of the caller's reference.
    init(owning pointer: OpaquePointer) {
        // SAFETY: the caller transfers its reference, which `deinit` releases.
        unsafe self.pointer = pointer
    }

    /// Takes ownership of a certificate created by OpenSSL; nil if there is none.
    convenience init?(owningIfAny pointer: OpaquePointer?) {
        // SAFETY: the caller transfers the only reference to a new object.
        guard let pointer = unsafe pointer else { return nil }
        unsafe self.init(owning: pointer)
    }

    /// Retains a certificate owned by OpenSSL; nil if there is none.
    convenience init?(retaining pointer: OpaquePointer?) {
        // SAFETY: the caller keeps the object valid during the call, and X509_up_ref adds the
        // reference that this object releases.
        guard let pointer = unsafe pointer, unsafe X509_up_ref(pointer) == 1 else { return nil }
        unsafe self.init(owning: pointer)
    }

    // SAFETY: releases the one reference of this object.
    deinit { unsafe X509_free(pointer) }

    /// Decodes one certificate in DER.
    public convenience init(der: [UInt8]) throws(TLSError) {
        ErrorQueue.clear()
        // SAFETY: `d2i_X509` creates a new X509, of which this object takes ownership.
        guard let pointer = unsafe DERCoding.read(der, d2i_X509) else {
            ErrorQueue.clear()
            throw TLSError(.certificateUnreadable, "this is not a certificate in DER form")
        }
        unsafe self.init(owning: pointer)
    }

    /// Decodes every certificate of a PEM text, which must contain at least one.
    public static func all(pem: [UInt8]) throws(TLSError) -> [Certificate] {
        ErrorQueue.clear()
        var certificates: [Certificate] = []
        let complete = PEMText.read(pem) { bio in
            // SAFETY: the BIO is open during the closure, and PEM_read_bio_X509 returns a new
            // reference.
            while let certificate = unsafe Certificate(
                owningIfAny: PEM_read_bio_X509(bio, nil, { _, _, _, _ in -1 }, nil))
            {
                certificates.append(certificate)
            }
            // The end of the text is reported as "no start line"; any other error means a damaged
            // certificate.
            let last = ERR_peek_last_error()
            return ERR_GET_LIB(last) == ERR_LIB_PEM && ERR_GET_REASON(last) == PEM_R_NO_START_LINE
        }
        ErrorQueue.clear()
        guard complete else {
            throw TLSError(
                .certificateUnreadable,
                "certificate \(certificates.count + 1) of the file is damaged: save the file again")
        }
        guard !certificates.isEmpty else {
            throw TLSError(
                .certificateUnreadable,
                "no certificate in PEM form (-----BEGIN CERTIFICATE-----): name another file")
        }
        return certificates
    }

    /// Decodes every certificate of a file in any of the forms supported by `KeyForm`.
    static func all(file: [UInt8]) throws(TLSError) -> [Certificate] {
        do throws(TLSError) {
            return try all(pem: file)
        } catch {
            guard let text = KeyForm.unwrapped(file), let found = try? all(pem: text) else {
                throw KeyForm.error(noCertificateIn: file) ?? error
            }
            return found
        }
    }

    /// The certificate in DER.
    public var der: [UInt8] {
        // SAFETY: `pointer` is an X509, the type that `i2d_X509` encodes.
        unsafe DERCoding.write(pointer, i2d_X509)
    }

    /// The certificate in PEM.
    public var pem: [UInt8] {
        // SAFETY: `pointer` is an X509; the BIO is open in the closure.
        PEMText.write { unsafe PEM_write_bio_X509($0, pointer) }
    }

    /// The distinguished name of the subject in RFC 2253 style.
    public var subject: String {
        // SAFETY: the name belongs to the certificate, and is copied into a text.
        unsafe PEMText.name(X509_get_subject_name(pointer))
    }

    /// The distinguished name of the issuer in RFC 2253 style.
    public var issuer: String {
        // SAFETY: the name belongs to the certificate, and is copied into a text.
        unsafe PEMText.name(X509_get_issuer_name(pointer))
    }

    /// The beginning of the validity period, such as `2030-01-01T00:00:00Z`.
    public var firstDay: String {
        // SAFETY: the time belongs to the certificate, and is copied into a text.
        unsafe Self.text(X509_get0_notBefore(pointer))
    }

    /// The end of the validity period, such as `2030-12-31T23:59:59Z`.
    public var lastDay: String {
        // SAFETY: the time belongs to the certificate, and is copied into a text.
        unsafe Self.text(X509_get0_notAfter(pointer))
    }

    /// The end of the validity period, in seconds since 1970; nil if the certificate's value is
    /// invalid.
    public var notAfter: Int64? {
        // SAFETY: the time belongs to the certificate, and is only compared.
        unsafe Self.seconds(X509_get0_notAfter(pointer))
    }

    /// The beginning of the validity period, in seconds since 1970; nil if the certificate's value
    /// is invalid.
    public var notBefore: Int64? {
        // SAFETY: the time belongs to the certificate, and is only compared.
        unsafe Self.seconds(X509_get0_notBefore(pointer))
    }

    private static func seconds(_ time: UnsafePointer<ASN1_TIME>?) -> Int64? {
        // SAFETY: `epoch` is freed when the function ends. The certificate's time belongs to the
        // certificate, which the calling property keeps alive.
        guard let epoch = unsafe ASN1_TIME_set(nil, 0) else { return nil }
        defer { unsafe ASN1_STRING_free(epoch) }
        var days: Int32 = 0
        var seconds: Int32 = 0
        guard unsafe ASN1_TIME_diff(&days, &seconds, epoch, time) == 1 else { return nil }
        return Int64(days) * 86_400 + Int64(seconds)
    }

    /// Returns whether the certificate was issued for a private key.
    func belongs(to key: PrivateKey) -> Bool {
        ErrorQueue.clear()
        defer { ErrorQueue.clear() }
        // SAFETY: both objects outlive the call, which only compares their public keys.
        return unsafe X509_check_private_key(pointer, key.pointer) == 1
    }

    /// Returns the first value of the subject attribute with the given dotted object identifier, as
    /// UTF-8. The identifier of UID is 0.9.2342.19200300.100.1.1, that of the common name is
    /// 2.5.4.3.
    public func subjectAttribute(_ identifier: String) -> String? {
        guard let object = OpenSSLObject(identifier: identifier) else {
            ErrorQueue.clear()
            return nil
        }
        // SAFETY: the name belongs to the certificate, which outlives the call; the index is one
        // that OpenSSL found in it.
        let name = unsafe X509_get_subject_name(pointer)
        let index = object.lend { unsafe X509_NAME_get_index_by_OBJ(name, $0, -1) }
        guard index >= 0 else { return nil }
        return unsafe PEMText.utf8(X509_NAME_ENTRY_get_data(X509_NAME_get_entry(name, index)))
    }

    /// Returns the DER value inside the OCTET STRING of the extension with the given dotted object
    /// identifier.
    public func extensionValue(_ identifier: String) -> [UInt8]? {
        guard let object = OpenSSLObject(identifier: identifier) else {
            ErrorQueue.clear()
            return nil
        }
        // SAFETY: extensions belong to the certificate, which outlives the call; the index is one
        // that OpenSSL found.
        let index = object.lend { unsafe X509_get_ext_by_OBJ(pointer, $0, -1) }
        guard index >= 0 else { return nil }
        return unsafe PEMText.bytes(X509_EXTENSION_get_data(X509_get_ext(pointer, index)))
    }

    /// The DNS names and IP addresses for which the certificate is valid.
    public var alternativeNames: [String] {
        // SAFETY: X509_get_ext_d2i creates a new list, which `names` owns and frees with the
        // matching function. The names and their texts belong to it, and each index is below its
        // count.
        let list = unsafe X509_get_ext_d2i(pointer, NID_subject_alt_name, nil, nil)
        guard
            let names = unsafe OpenSSLObject(OpaquePointer(list), freedBy: GENERAL_NAMES_free)
        else {
            ErrorQueue.clear()
            return []
        }
        var texts: [String] = []
        for index in 0..<(names.lend { unsafe openssl_name_count($0) }) {
            guard let name = names.lend({ unsafe openssl_name($0, index) }),
                let value = unsafe openssl_name_text(name)
            else { continue }
            let bytes = unsafe PEMText.bytes(value)
            if unsafe openssl_name_is_address(name) != 0 {
                texts.append(Self.addressText(bytes))
            } else {
                texts.append(String(decoding: bytes, as: UTF8.self))
            }
        }
        return texts
    }

    private static func addressText(_ bytes: [UInt8]) -> String {
        guard bytes.count == 16 else { return bytes.map(String.init).joined(separator: ".") }
        let groups = stride(from: 0, to: 16, by: 2).map {
            String(Int(bytes[$0]) << 8 | Int(bytes[$0 + 1]), radix: 16)
        }
        return groups.joined(separator: ":")
    }

    private static func text(_ time: UnsafePointer<ASN1_TIME>?) -> String {
        // SAFETY: the time belongs to a certificate that the calling property keeps alive. Of
        // `parts` only numbers are read.
        var parts = unsafe tm()
        guard unsafe ASN1_TIME_to_tm(time, &parts) == 1 else { return "an unreadable time" }
        func digits(_ number: Int32) -> String { (number < 10 ? "0" : "") + String(number) }
        let date = unsafe [parts.tm_year + 1_900, parts.tm_mon + 1, parts.tm_mday].map(digits)
        let time = unsafe [parts.tm_hour, parts.tm_min, parts.tm_sec].map(digits)
        return date.joined(separator: "-") + "T" + time.joined(separator: ":") + "Z"
    }
}
