internal import CBroadsideOpenSSL

/// Where OpenSSL takes ciphertext from and puts it, for the duration of one call.
///
/// A BIO of our own instead of memory BIOs: OpenSSL reads straight from the received buffer and
/// writes straight into the buffer that is sent, one copy each way.
@safe struct RecordTransfer {
    // SAFETY: both are lent by `attach` for one call of OpenSSL's and taken away by `detach` before
    // the lender's closure ends; in between only that session's BIO reaches them.
    private var source: UnsafeRawBufferPointer = unsafe UnsafeRawBufferPointer(start: nil, count: 0)
    private var sink: UnsafeMutableRawBufferPointer = unsafe UnsafeMutableRawBufferPointer(
        start: nil, count: 0)
    /// Bytes taken from the source in this call.
    private(set) var consumed = 0
    /// Bytes put into the sink in this call.
    private(set) var produced = 0
    /// The first two bytes that the peer ever sent; they tell TLS from anything else.
    private(set) var firstBytes: (UInt8, UInt8)?
    private var firstByte: UInt8?
    /// The server asked for a certificate and the context had none.
    var certificateRequested = false
    /// Why the peer's certificate was refused.
    var verification: TLSError?
    /// What the certificate has to be for; nil on the server's side.
    var serverName: ServerName?
    /// Where the tickets go that the server gives; nil where none are kept.
    var tickets: SessionTickets?
    /// When the session itself verified a certificate, and when that was done on which its ticket rests.
    var verified: ContinuousClock.Instant?
    var verifiedBefore: ContinuousClock.Instant?
    /// A server without authorities takes any client certificate; its topics are what counts.
    var acceptsAnyCertificate = false

    /// Something of the source is left.
    var hasSource: Bool {
        // SAFETY: only the count of the range is read.
        unsafe consumed < source.count
    }

    /// Starts a call.
    mutating func attach(
        source: UnsafeRawBufferPointer, sink: UnsafeMutableRawBufferPointer
    ) {
        // SAFETY: the caller keeps both ranges until it calls `detach`.
        unsafe self.source = source
        unsafe self.sink = sink
        consumed = 0
        produced = 0
    }

    /// Ends a call: the pointers are only good during it.
    mutating func detach() {
        // SAFETY: empty ranges name no memory.
        unsafe source = UnsafeRawBufferPointer(start: nil, count: 0)
        unsafe sink = UnsafeMutableRawBufferPointer(start: nil, count: 0)
    }

    /// Copies up to `count` bytes of the source; 0 where it is used up.
    mutating func read(into target: UnsafeMutableRawPointer, count: Int) -> Int {
        // SAFETY: OpenSSL gives room for `count` bytes; `consumed + taken` is within the source, so
        // that it has an address if anything is taken.
        let taken = unsafe min(count, source.count - consumed)
        guard taken > 0 else { return 0 }
        unsafe target.copyMemory(from: source.baseAddress! + consumed, byteCount: taken)
        if firstBytes == nil {
            for position in consumed..<consumed + taken where firstBytes == nil {
                unsafe recordFirst(source[position])
            }
        }
        consumed += taken
        return taken
    }

    /// Copies as much of the record as the sink has room for; 0 where it is full.
    mutating func write(_ record: UnsafeRawPointer, count: Int) -> Int {
        // SAFETY: OpenSSL's record has `count` bytes; `produced + put` is within the sink, so that
        // it has an address if anything is put there.
        let put = unsafe min(count, sink.count - produced)
        guard put > 0 else { return 0 }
        unsafe (sink.baseAddress! + produced).copyMemory(from: record, byteCount: put)
        produced += put
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

/// Where a session's transfer lies: at an address of its own, which the session's BIO keeps.
@safe struct SharedTransfer {
    // SAFETY: allocated in `init(_:)`; the session that asked for it frees it by `deallocate`,
    // behind SSL_free, which ends the BIO that has a copy.
    private let pointer: UnsafeMutablePointer<RecordTransfer>

    /// Moves a transfer there, until `deallocate`.
    init(_ transfer: RecordTransfer) {
        // SAFETY: the memory is new, has room for one transfer, and is set at once.
        unsafe pointer = .allocate(capacity: 1)
        unsafe pointer.initialize(to: transfer)
    }

    /// The transfer behind a BIO that `RecordBIO` made.
    @unsafe init(behind bio: OpaquePointer?) {
        // SAFETY: the caller has a BIO of `makeBIO`, which holds the address of a transfer.
        unsafe pointer = BIO_get_data(bio).assumingMemoryBound(to: RecordTransfer.self)
    }

    /// The transfer behind a session of ours: each has such a BIO.
    @unsafe init(of session: OpaquePointer) {
        // SAFETY: the caller has a session of `TLSSession`, which gives each a BIO of `makeBIO`.
        unsafe self.init(behind: SSL_get_rbio(session))
    }

    /// Ends the transfer; nothing may ask for it afterwards.
    @unsafe func deallocate() {
        // SAFETY: the caller calls it once, when session and BIO are freed; `init(_:)` set the
        // transfer.
        unsafe pointer.deinitialize(count: 1)
        unsafe pointer.deallocate()
    }

    /// A BIO over the transfer, which has to outlive it; nil where memory is short.
    @unsafe func makeBIO() -> OpaquePointer? {
        // SAFETY: `method` lives for ever. The caller keeps the transfer as long as the BIO, which
        // is its own.
        guard let bio = unsafe BIO_new(RecordBIO.method) else { return nil }
        unsafe BIO_set_data(bio, pointer)
        unsafe BIO_set_init(bio, 1)
        return unsafe bio
    }

    /// The transfer.
    var value: RecordTransfer {
        // SAFETY: sessions end their transfer last, and are used by one thread at a time.
        @inline(__always) unsafeAddress { unsafe UnsafePointer(pointer) }
        @inline(__always) nonmutating unsafeMutableAddress { unsafe pointer }
    }
}

/// The BIO_METHOD, made once for the process.
enum RecordBIO {
    // SAFETY: a BIO_METHOD is not changed after it was made and never freed; OpenSSL only reads it.
    fileprivate nonisolated(unsafe) static let method: OpaquePointer = unsafe makeMethod()

    private static func makeMethod() -> OpaquePointer {
        // 0x0400 is BIO_TYPE_SOURCE_SINK.
        // SAFETY: BIO_meth_new copies the name. OpenSSL calls back with a BIO of `makeBIO`, which
        // has a transfer, and with `count` bytes that it reads or writes.
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
