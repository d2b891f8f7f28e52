internal import CBroadsideNghttp2

/// The owner of an nghttp2 server session.
@safe struct NativeSession: ~Copyable {
    // SAFETY: nghttp2's, made by `open`, which its owner calls before anything else, and deleted in
    // `deinit`. One thread uses it. nghttp2 checks the numbers of streams that it is given.
    private var pointer: OpaquePointer?

    /// Begins the session, which reports to `owner`: the owner has this value and so outlives it.
    mutating func open(for owner: ServerSession) {
        // SAFETY: the session reports to its owner while that calls it, and so not after its end.
        precondition(unsafe pointer == nil)
        unsafe pointer = SessionCallbacks.makeSession(for: owner)
    }

    // SAFETY: nobody else has the pointer, and deleting a session reports nothing.
    deinit { if let pointer = unsafe pointer { unsafe nghttp2_session_del(pointer) } }

    // MARK: Bytes

    /// Reads plaintext; the count of bytes that were read, or an error.
    func receive(_ bytes: RawSpan) -> Int {
        // SAFETY: nghttp2 reads the bytes within the call.
        unsafe bytes.withUnsafeBytes {
            unsafe nghttp2_session_mem_recv(
                pointer, $0.baseAddress?.assumingMemoryBound(to: UInt8.self), $0.count)
        }
    }

    /// Hands the next frame that waits to the closure, whole; false where none waits.
    func send(_ body: (RawSpan) -> Void) -> Bool {
        var data: UnsafePointer<UInt8>?
        // SAFETY: nghttp2 keeps `count` bytes at `data` until its next call, which the closure does
        // not make.
        let count = unsafe nghttp2_session_mem_send(pointer, &data)
        guard count > 0, let data = unsafe data else { return false }
        unsafe body(RawSpan(_unsafeStart: data, byteCount: count))
        return true
    }

    /// Whether there is anything to write.
    // SAFETY: the session is open, see `pointer`.
    var wantsWrite: Bool { unsafe nghttp2_session_want_write(pointer) != 0 }

    /// Whether nghttp2 has any use for input.
    // SAFETY: the session is open, see `pointer`.
    var wantsRead: Bool { unsafe nghttp2_session_want_read(pointer) != 0 }

    // MARK: Streams

    /// The highest number of a stream that was processed.
    // SAFETY: the session is open, see `pointer`.
    var lastProcessed: Int32 { unsafe nghttp2_session_get_last_proc_stream_id(pointer) }

    /// Keeps for a stream what `stream(_:)` says of it; nil for nothing.
    func setStream(_ streamID: Int32, _ index: StreamIndex?) {
        // SAFETY: the mark is a number that is never followed, nil for none.
        let mark = unsafe UnsafeMutableRawPointer(bitPattern: index.map { $0.value + 1 } ?? 0)
        _ = unsafe nghttp2_session_set_stream_user_data(pointer, streamID, mark)
    }

    /// What was kept for a stream that nghttp2 knows.
    func stream(_ streamID: Int32) -> StreamIndex? {
        // SAFETY: the mark is a number that `setStream` made, and is not followed.
        guard let mark = unsafe nghttp2_session_get_stream_user_data(pointer, streamID) else {
            return nil
        }
        return StreamIndex(value: Int(bitPattern: mark) - 1)
    }

    // MARK: Frames

    /// Queues SETTINGS.
    func submit(_ entries: [nghttp2_settings_entry]) {
        // SAFETY: nghttp2 copies the entries before the call returns.
        _ = unsafe entries.withUnsafeBufferPointer {
            unsafe nghttp2_submit_settings(pointer, noFlags, $0.baseAddress, $0.count)
        }
    }

    /// Queues GOAWAY.
    func submitGoAway(_ code: UInt32, _ debug: [UInt8], lastStream: Int32) {
        // SAFETY: nghttp2 copies the debug data before the call returns.
        _ = unsafe debug.withUnsafeBufferPointer {
            unsafe nghttp2_submit_goaway(
                pointer, noFlags, lastStream, code, $0.baseAddress, $0.count)
        }
    }

    /// Queues RST_STREAM.
    func submitReset(_ streamID: UInt32, _ code: UInt32) {
        // SAFETY: the session is open, see `pointer`.
        _ = unsafe nghttp2_submit_rst_stream(pointer, noFlags, Int32(streamID), code)
    }

    /// Queues WINDOW_UPDATE.
    func submitWindowUpdate(_ streamID: Int32, _ credit: Int) {
        // SAFETY: the session is open, see `pointer`.
        _ = unsafe nghttp2_submit_window_update(pointer, noFlags, streamID, Int32(credit))
    }

    /// Queues HEADERS with these fields, whose values lie in `texts`, and DATA where `body` says so.
    func submitResponse(
        _ streamID: UInt32, _ fields: [ResponseField], texts: borrowing ByteBuffer,
        body: StreamIndex?
    ) {
        // SAFETY: nghttp2 copies names, values and the provider before the call returns, and writes
        // to none. The fields' ranges lie in `texts`, which has the status at least; a name is
        // constant.
        unsafe texts.bytes.withUnsafeBytes { texts in
            let fields = unsafe fields.map { field in
                unsafe nghttp2_nv(
                    name: UnsafeMutablePointer(mutating: field.name.utf8Start),
                    value: UnsafeMutablePointer(
                        mutating: texts.baseAddress!.assumingMemoryBound(to: UInt8.self)
                            + field.value.lowerBound),
                    namelen: field.name.utf8CodeUnitCount, valuelen: field.value.count,
                    flags: field.flags)
            }
            guard let body else {
                _ = unsafe nghttp2_submit_response(
                    pointer, Int32(streamID), fields, fields.count, nil)
                return
            }
            var provider = unsafe nghttp2_data_provider(
                source: nghttp2_data_source(fd: Int32(body.value)),
                read_callback: SessionCallbacks.readBody)
            _ = unsafe nghttp2_submit_response(
                pointer, Int32(streamID), fields, fields.count, &provider)
        }
    }

    private var noFlags: UInt8 { UInt8(NGHTTP2_FLAG_NONE.rawValue) }
}

/// A field of a response.
struct ResponseField {
    let name: StaticString
    /// Where its value lies in the texts of the response.
    let value: Range<Int>
    let flags: UInt8

    init(
        _ name: StaticString, _ value: Range<Int>, flags: nghttp2_nv_flag = NGHTTP2_NV_FLAG_NONE
    ) {
        self.name = name
        self.value = value
        self.flags = UInt8(flags.rawValue)
    }
}
