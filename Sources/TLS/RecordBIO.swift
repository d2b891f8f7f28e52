internal import CBroadsideOpenSSL

/// The source and the destination of OpenSSL's ciphertext for the duration of one call.
///
/// With a custom BIO instead of memory BIOs, OpenSSL reads directly from the received buffer and
/// writes directly into the buffer to be sent. This takes one copy in each direction.
@safe struct RecordTransfer {
    // SAFETY: both are provided by `attach` for one OpenSSL call and removed by `detach` before the
    // provider's closure ends; in between only that session's BIO accesses them.
    private var source: UnsafeRawBufferPointer = unsafe UnsafeRawBufferPointer(start: nil, count: 0)
    private var sink: UnsafeMutableRawBufferPointer = unsafe UnsafeMutableRawBufferPointer(
        start: nil, count: 0)
    /// Bytes read from the source during this call.
    private(set) var consumed = 0
    /// Bytes written to the sink during this call.
    private(set) var produced = 0
    /// Bytes received from the peer in all calls.
    private(set) var receivedCount = 0
    /// The first two bytes received from the peer, which distinguish TLS from other protocols.
    private(set) var firstBytes: (UInt8, UInt8)?
    private var firstByte: UInt8?
    /// True if the server requested a certificate and the context has none.
    var certificateRequested = false
    /// The reason for which the peer's certificate was rejected.
    var verification: TLSError?
    /// The name for which the server's certificate must be valid; nil in a server's session.
    var serverName: ServerName?
    /// The destination of session tickets issued by the server; nil if none are kept.
    var tickets: SessionTickets?
    /// Time at which this session verified the certificate.
    var verified: ContinuousClock.Instant?
    /// Time of the certificate verification on which the offered ticket is based; nil without a
    /// ticket.
    var verifiedBefore: ContinuousClock.Instant?
    /// True if a server without configured authorities accepts any client certificate. Only the
    /// certificate's topics are then examined.
    var acceptsAnyCertificate = false

    /// Whether unread source bytes remain.
    var hasSource: Bool {
        // SAFETY: only the count of the range is read.
        unsafe consumed < source.count
    }

    /// Begins an OpenSSL call that uses this input and output.
    mutating func attach(
        source: UnsafeRawBufferPointer, sink: UnsafeMutableRawBufferPointer
    ) {
        // SAFETY: the caller keeps both ranges valid until it calls `detach`.
        unsafe assert(self.sink.count == 0, "a call inside another one")
        unsafe self.source = source
        unsafe self.sink = sink
        consumed = 0
        produced = 0
    }

    /// Ends an OpenSSL call. The pointers are valid only during the call.
    mutating func detach() {
        // SAFETY: empty ranges refer to no memory.
        unsafe source = UnsafeRawBufferPointer(start: nil, count: 0)
        unsafe sink = UnsafeMutableRawBufferPointer(start: nil, count: 0)
    }

    /// Copies up to `count` bytes of the source; returns 0 if it is exhausted.
    mutating func read(into target: UnsafeMutableRawPointer, count: Int) -> Int {
        // SAFETY: OpenSSL provides room for `count` bytes; `consumed + taken` is within the source,
        // so it has an address if anything is copied.
        let taken = unsafe min(count, source.count - consumed)
        guard taken > 0 else { return 0 }
        unsafe target.copyMemory(from: source.baseAddress! + consumed, byteCount: taken)
        if firstBytes == nil {
            for position in consumed..<consumed + taken where firstBytes == nil {
                unsafe recordFirst(source[position])
            }
        }
        consumed += taken
        receivedCount += taken
        unsafe assert(consumed <= source.count)
        return taken
    }

    /// Copies as much of the record as fits the sink; returns 0 if the sink is full.
    mutating func write(_ record: UnsafeRawPointer, count: Int) -> Int {
        // SAFETY: OpenSSL's record has `count` bytes; `produced + put` is within the sink, so it
        // has an address if anything is copied.
        let put = unsafe min(count, sink.count - produced)
        guard put > 0 else { return 0 }
        unsafe (sink.baseAddress! + produced).copyMemory(from: record, byteCount: put)
        produced += put
        unsafe assert(produced <= sink.count)
        return put
    }

    private mutating func recordFirst(_ byte: UInt8) {
        if let firstByte {
            firstBytes = (firstByte, byte)
        } else {
            firstByte = byte
        }
    }
}

/// A session's transfer at a stable address, which the session's BIO stores.
@safe struct SharedTransfer {
    // SAFETY: allocated in `init(_:)`; the session that requested it frees it with `deallocate`
    // after SSL_free, which ends the BIO that holds a copy of the pointer.
    private let pointer: UnsafeMutablePointer<RecordTransfer>

    /// Moves a transfer to stable memory until `deallocate`.
    init(_ transfer: RecordTransfer) {
        // SAFETY: the memory is new, has room for one transfer and is initialized immediately.
        unsafe pointer = .allocate(capacity: 1)
        unsafe pointer.initialize(to: transfer)
    }

    /// Returns the transfer behind a BIO created by `RecordBIO`.
    @unsafe init(behind bio: OpaquePointer?) {
        // SAFETY: the caller's BIO was created by `makeBIO` and holds the address of a transfer.
        unsafe pointer = BIO_get_data(bio).assumingMemoryBound(to: RecordTransfer.self)
    }

    /// Returns the transfer of a session created by `TLSSession`.
    @unsafe init(of session: OpaquePointer) {
        // SAFETY: the caller's session was created by `TLSSession`, which gives each one a BIO from
        // `makeBIO`.
        unsafe self.init(behind: SSL_get_rbio(session))
    }

    /// Frees the transfer, which must not be used afterwards.
    @unsafe func deallocate() {
        // SAFETY: the caller calls it once, after session and BIO are freed; `init(_:)` initialized
        // the transfer.
        unsafe pointer.deinitialize(count: 1)
        unsafe pointer.deallocate()
    }

    /// Creates a BIO over the transfer; nil if memory is exhausted. The transfer must outlive the
    /// BIO.
    @unsafe func makeBIO() -> OpaquePointer? {
        // SAFETY: `method` is never freed. The caller owns the BIO and keeps the transfer alive as
        // long as it.
        guard let bio = unsafe BIO_new(RecordBIO.method) else { return nil }
        unsafe BIO_set_data(bio, pointer)
        unsafe BIO_set_init(bio, 1)
        return unsafe bio
    }

    /// The transfer.
    var value: RecordTransfer {
        // SAFETY: a session frees its transfer last and is used by one thread at a time.
        @inline(__always) unsafeAddress { unsafe UnsafePointer(pointer) }
        @inline(__always) nonmutating unsafeMutableAddress { unsafe pointer }
    }
}

/// The BIO_METHOD, created once per process.
enum RecordBIO {
    // SAFETY: a BIO_METHOD is not modified after its creation and never freed; OpenSSL only reads
    // it.
    fileprivate nonisolated(unsafe) static let method: OpaquePointer = unsafe makeMethod()

    private static func makeMethod() -> OpaquePointer {
        // 0x0400 is BIO_TYPE_SOURCE_SINK. SAFETY: BIO_meth_new copies the name. OpenSSL calls back
        // with a BIO from `makeBIO`, which has a transfer, and with `count` bytes to read or write.
        let method = unsafe BIO_meth_new(BIO_get_new_index() | 0x0400, "broadside records")!
        unsafe BIO_meth_set_read(method) { bio, target, count in
            unsafe openssl_clear_retry(bio)
            guard let target = unsafe target, count > 0 else { return 0 }
            let taken = unsafe SharedTransfer(behind: bio).value.read(
                into: UnsafeMutableRawPointer(target), count: Int(count))
            guard taken == 0 else { return Int32(taken) }
            unsafe openssl_wait_for_read(bio)
            return -1
        }
        unsafe BIO_meth_set_write(method) { bio, record, count in
            unsafe openssl_clear_retry(bio)
            guard let record = unsafe record, count > 0 else { return 0 }
            let put = unsafe SharedTransfer(behind: bio).value.write(
                UnsafeRawPointer(record), count: Int(count))
            guard put == 0 else { return Int32(put) }
            unsafe openssl_wait_for_write(bio)
            return -1
        }
        unsafe BIO_meth_set_ctrl(method) { _, command, _, _ in
            command == BIO_CTRL_FLUSH ? 1 : 0
        }
        return unsafe method
    }
}
