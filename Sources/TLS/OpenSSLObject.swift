internal import CBroadsideOpenSSL

/// An object of OpenSSL's that lives as long as this value.
@safe struct OpenSSLObject: ~Copyable {
    // SAFETY: the object is this value's alone: taken over in `init`, ended by `deinit` with the
    // function that belongs to its type.
    private let pointer: OpaquePointer
    private let free: (OpaquePointer?) -> Void

    /// Takes over what OpenSSL made; nil where it made nothing.
    ///
    /// - Parameter free: The function that ends such an object.
    @unsafe init?(_ pointer: OpaquePointer?, freedBy free: @escaping (OpaquePointer?) -> Void) {
        // SAFETY: the caller hands over the object, and the function that frees one of its type.
        guard let pointer = unsafe pointer else { return nil }
        unsafe self.pointer = pointer
        unsafe self.free = free
    }

    // SAFETY: the object is this value's alone.
    deinit { unsafe free(pointer) }

    /// An object identifier by its digits and dots.
    init?(identifier: String) {
        // SAFETY: OBJ_txt2obj makes an object of its own, or none, and ASN1_OBJECT_free ends it.
        unsafe self.init(OBJ_txt2obj(identifier, 1), freedBy: ASN1_OBJECT_free)
    }

    /// Lends the object to a call.
    @safe func lend<Result, Failure>(
        _ body: (OpaquePointer) throws(Failure) -> Result
    ) throws(Failure) -> Result {
        // SAFETY: the object lives as long as this value, which is borrowed during the call.
        try unsafe body(pointer)
    }
}

/// Objects in DER, as OpenSSL's functions `d2i` and `i2d` of each type convert them.
enum DERCoding {
    /// Reads an object, which is the caller's; nil where the bytes hold none.
    static func read(
        _ bytes: [UInt8],
        _ decode: (
            UnsafeMutablePointer<OpaquePointer?>?, UnsafeMutablePointer<UnsafePointer<UInt8>?>?, Int
        ) -> OpaquePointer?
    ) -> OpaquePointer? {
        // SAFETY: functions `d2i` read at most as many bytes as they are told, and move `position`,
        // a local; the object is one of their own.
        unsafe bytes.withUnsafeBufferPointer { bytes in
            var position = bytes.baseAddress
            return unsafe decode(nil, &position, bytes.count)
        }
    }

    /// The bytes of an object; empty where it has no such form.
    static func write(
        _ object: OpaquePointer,
        _ encode: (OpaquePointer?, UnsafeMutablePointer<UnsafeMutablePointer<UInt8>?>?) -> Int32
    ) -> [UInt8] {
        // SAFETY: the object is the caller's and does not change between the calls, so that
        // `encode` writes as many bytes as it said: the buffer has room for them.
        let count = unsafe encode(object, nil)
        guard count > 0 else { return [] }
        return unsafe [UInt8](unsafeUninitializedCapacity: Int(count)) { buffer, written in
            var position = buffer.baseAddress
            written = unsafe Int(max(0, encode(object, &position)))
        }
    }
}

extension String {
    /// A text of OpenSSL's; nil where it gave none.
    @unsafe init?(openSSL text: UnsafePointer<CChar>?) {
        // SAFETY: OpenSSL's texts end in NUL; the caller has one that lives during the call.
        guard let text = unsafe text else { return nil }
        unsafe self.init(cString: text)
    }
}
