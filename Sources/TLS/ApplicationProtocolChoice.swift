internal import CBroadsideOpenSSL

/// Server-side ALPN (RFC 7301): selects the first of the server's protocols that the client also
/// offers.
@safe final class ApplicationProtocolChoice: Sendable {
    // SAFETY: allocated and written in `init` only, freed in `deinit`.
    /// The protocols in wire form, at an address to which OpenSSL may keep a pointer.
    private nonisolated(unsafe) let wire: UnsafeMutableBufferPointer<UInt8>

    init(_ protocols: [String]) {
        let bytes = Self.wireForm(protocols)
        // SAFETY: `wire` has room for all of `bytes`, which are copied into it before a callback
        // reads it.
        unsafe wire = .allocate(capacity: bytes.count)
        _ = unsafe wire.initialize(from: bytes)
    }

    // SAFETY: the context that owns this object is freed after its sessions, so no callback can
    // follow.
    deinit { unsafe wire.deallocate() }

    /// Returns length-prefixed names, as in the ALPN extension.
    static func wireForm(_ protocols: [String]) -> [UInt8] {
        protocols.flatMap { name -> [UInt8] in
            precondition((1...255).contains(name.utf8.count), "RFC 7301 section 3.1")
            return [UInt8(name.utf8.count)] + Array(name.utf8)
        }
    }

    /// Installs the selection callback. The context owns this object and outlives its sessions,
    /// because each session holds a reference to the context.
    func install(_ context: OpaquePointer) {
        // SAFETY: the argument is this object, which outlives the context's sessions. OpenSSL
        // passes a validated, non-empty list (RFC 7301), `wire` is not empty either, and `found`
        // points into `wire`.
        unsafe SSL_CTX_set_alpn_select_cb(
            context,
            { _, selected, selectedCount, offered, offeredCount, argument in
                let choice = unsafe Unmanaged<ApplicationProtocolChoice>.fromOpaque(argument!)
                    .takeUnretainedValue()
                var found: UnsafeMutablePointer<UInt8>?
                let result = unsafe SSL_select_next_proto(
                    &found, selectedCount, choice.wire.baseAddress, UInt32(choice.wire.count),
                    offered, offeredCount)
                // RFC 7301 section 3.2: a server that supports none of them "SHALL respond with
                // a fatal no_application_protocol alert".
                guard result == OPENSSL_NPN_NEGOTIATED else { return SSL_TLSEXT_ERR_ALERT_FATAL }
                unsafe selected!.pointee = unsafe UnsafePointer(found)
                return SSL_TLSEXT_ERR_OK
            }, Unmanaged.passUnretained(self).toOpaque())
    }
}
