internal import CBroadsideOpenSSL

/// An OpenSSL object owned by this value.
@safe struct OpenSSLObject: ~Copyable {
    // SAFETY: the object belongs to this value alone: ownership is taken in `init`, and `deinit`
    // frees it with the function for its type.
    private let pointer: OpaquePointer
    private let free: (OpaquePointer?) -> Void

    /// Takes ownership of an object created by OpenSSL; nil if there is none.
    ///
    /// - Parameter free: The function that frees an object of this type.
    @unsafe init?(_ pointer: OpaquePointer?, freedBy free: @escaping (OpaquePointer?) -> Void) {
        // SAFETY: the caller transfers the object and the function that frees objects of its type.
        guard let pointer = unsafe pointer else { return nil }
        unsafe self.pointer = pointer
        unsafe self.free = free
    }

    // SAFETY: the object belongs to this value alone.
    deinit { unsafe free(pointer) }

    /// Creates an object identifier from its dotted form.
    init?(identifier: String) {
        // SAFETY: OBJ_txt2obj creates a new object or none, and ASN1_OBJECT_free frees it.
        unsafe self.init(OBJ_txt2obj(identifier, 1), freedBy: ASN1_OBJECT_free)
    }

    /// Passes the object to `body`.
    @safe func lend<Result, Failure>(
        _ body: (OpaquePointer) throws(Failure) -> Result
    ) throws(Failure) -> Result {
        // SAFETY: the object lives as long as this value, which is borrowed during the call.
        try unsafe body(pointer)
    }
}

/// Conversion of objects from and to DER by OpenSSL's `d2i` and `i2d` functions.
enum DERCoding {
    /// Decodes an object, which the caller then owns; nil if the bytes are invalid.
    static func read(
        _ bytes: [UInt8],
        _ decode: (
            UnsafeMutablePointer<OpaquePointer?>?, UnsafeMutablePointer<UnsafePointer<UInt8>?>?, Int
        ) -> OpaquePointer?
    ) -> OpaquePointer? {
        // SAFETY: `d2i` functions read at most the given number of bytes and advance `position`, a
        // local variable; the object is new.
        unsafe bytes.withUnsafeBufferPointer { bytes in
            var position = bytes.baseAddress
            return unsafe decode(nil, &position, bytes.count)
        }
    }

    /// Returns the DER of an object; empty if the object cannot be encoded.
    static func write(
        _ object: OpaquePointer,
        _ encode: (OpaquePointer?, UnsafeMutablePointer<UnsafeMutablePointer<UInt8>?>?) -> Int32
    ) -> [UInt8] {
        // SAFETY: the object belongs to the caller and does not change between the calls, so
        // `encode` writes the announced number of bytes, for which the buffer has room.
        let count = unsafe encode(object, nil)
        guard count > 0 else { return [] }
        return unsafe [UInt8](unsafeUninitializedCapacity: Int(count)) { buffer, written in
            var position = buffer.baseAddress
            written = unsafe Int(max(0, encode(object, &position)))
        }
    }
}

extension String {
    /// Copies a text owned by OpenSSL; nil if there is none.
    @unsafe init?(openSSL text: UnsafePointer<CChar>?) {
        // SAFETY: OpenSSL's texts end with NUL, and the caller keeps this one valid during the
        // call.
        guard let text = unsafe text else { return nil }
        unsafe self.init(cString: text)
    }
}
