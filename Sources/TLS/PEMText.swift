internal import CBroadsideOpenSSL

/// Passes text to and from OpenSSL, for keys and certificates. TLS records never use this.
enum PEMText {
    /// Passes bytes to OpenSSL for reading.
    @safe static func read<Result>(_ bytes: [UInt8], _ body: (OpaquePointer) -> Result) -> Result {
        // SAFETY: the BIO reads `buffer` in place and is freed before the closure ends. With zero
        // bytes it reads nothing, whatever the address.
        unsafe bytes.withUnsafeBufferPointer { buffer in
            let bio = unsafe BIO_new_mem_buf(
                buffer.baseAddress ?? UnsafePointer(bitPattern: 1), Int32(buffer.count))!
            defer { unsafe BIO_free(bio) }
            return unsafe body(bio)
        }
    }

    /// Returns the bytes that OpenSSL writes in `body`; empty if `body` fails.
    @safe static func write(_ body: (OpaquePointer) -> Int32) -> [UInt8] {
        // SAFETY: the BIO is freed when the function ends; the `count` bytes at `bytes` belong to
        // it and are copied before that.
        let bio = unsafe BIO_new(BIO_s_mem())!
        defer { unsafe BIO_free(bio) }
        guard unsafe body(bio) >= 0 else {
            ErrorQueue.clear()
            return []
        }
        var bytes: UnsafeMutablePointer<CChar>?
        let count = unsafe openssl_memory(bio, &bytes)
        guard count > 0, let bytes = unsafe bytes else { return [] }
        return unsafe Array(UnsafeRawBufferPointer(start: bytes, count: count))
    }

    /// Returns a distinguished name on one line.
    static func name(_ name: OpaquePointer?) -> String {
        // SAFETY: the caller's name outlives the call; the BIO is open in the closure.
        let bytes = write { unsafe X509_NAME_print_ex($0, name, 0, openssl_name_flags()) }
        return bytes.isEmpty ? "no name" : String(decoding: bytes, as: UTF8.self)
    }

    /// Returns the text of an ASN.1 string, or nil if it is not text.
    static func utf8(_ string: UnsafePointer<ASN1_STRING>?) -> String? {
        var text: UnsafeMutablePointer<UInt8>?
        // SAFETY: ASN1_STRING_to_UTF8 also accepts nil; it allocates `count` bytes, which are
        // copied and then freed.
        let count = unsafe ASN1_STRING_to_UTF8(&text, string)
        guard count >= 0, let text = unsafe text else {
            ErrorQueue.clear()
            return nil
        }
        defer { unsafe CRYPTO_free(text, "", 0) }
        return unsafe String(
            decoding: UnsafeBufferPointer(start: text, count: Int(count)), as: UTF8.self)
    }

    /// Returns the bytes of an ASN.1 string.
    static func bytes(_ string: UnsafePointer<ASN1_STRING>?) -> [UInt8] {
        // SAFETY: the string belongs to the caller's object; its bytes are copied before the object
        // can change.
        guard let string = unsafe string else { return [] }
        let count = unsafe Int(ASN1_STRING_length(string))
        guard count > 0, let start = unsafe ASN1_STRING_get0_data(string) else { return [] }
        return unsafe Array(UnsafeBufferPointer(start: start, count: count))
    }
}
