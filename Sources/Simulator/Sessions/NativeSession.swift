internal import CBroadsideNghttp2

/// Owner of an nghttp2 server session.
@safe struct NativeSession: ~Copyable {
    // SAFETY: created by nghttp2 in `open`, which the owner calls before any other method, and
    // deleted in `deinit`. Only one thread uses it. nghttp2 validates the stream numbers passed to
    // it.
    private var pointer: OpaquePointer?

    /// Creates the session, with callbacks to `owner`. The owner contains this value, and so it
    /// outlives the session.
    mutating func open(for owner: ServerSession) {
        // SAFETY: the session calls back only while its owner calls it, and therefore never after
        // the owner's end.
        precondition(unsafe pointer == nil)
        unsafe pointer = SessionCallbacks.makeSession(for: owner)
    }

    // SAFETY: this is the only pointer to the session, and deleting it invokes no callback.
    deinit { if let pointer = unsafe pointer { unsafe nghttp2_session_del(pointer) } }

    // MARK: Bytes

    /// Processes plaintext. Returns the number of bytes read, or a negative error code.
    func receive(_ bytes: RawSpan) -> Int {
        // SAFETY: nghttp2 reads the bytes only during the call.
        unsafe bytes.withUnsafeBytes {
            unsafe nghttp2_session_mem_recv(
                pointer, $0.baseAddress?.assumingMemoryBound(to: UInt8.self), $0.count)
        }
    }

    /// Passes the next pending frame to the closure as a whole; returns false if there is none.
    func send(_ body: (RawSpan) -> Void) -> Bool {
        var data: UnsafePointer<UInt8>?
        // SAFETY: nghttp2 keeps `count` bytes at `data` valid until its next call, which the
        // closure does not make.
        let count = unsafe nghttp2_session_mem_send(pointer, &data)
        guard count > 0, let data = unsafe data else { return false }
        unsafe body(RawSpan(_unsafeStart: data, byteCount: count))
        return true
    }

    /// Whether the session has output to write.
    // SAFETY: the session is open; see `pointer`.
    var wantsWrite: Bool { unsafe nghttp2_session_want_write(pointer) != 0 }

    /// Whether the session accepts more input.
    // SAFETY: the session is open; see `pointer`.
    var wantsRead: Bool { unsafe nghttp2_session_want_read(pointer) != 0 }

    // MARK: Streams

    /// The highest number of a stream that nghttp2 has processed.
    // SAFETY: the session is open; see `pointer`.
    var lastProcessed: Int32 { unsafe nghttp2_session_get_last_proc_stream_id(pointer) }

    /// Associates a stream with an index, which `stream(_:)` then returns. nil removes the index.
    func setStream(_ streamID: Int32, _ index: StreamIndex?) {
        // SAFETY: the tag is a number that is never dereferenced, or nil for none.
        let mark = unsafe UnsafeMutableRawPointer(bitPattern: index.map { $0.value + 1 } ?? 0)
        _ = unsafe nghttp2_session_set_stream_user_data(pointer, streamID, mark)
    }

    /// Returns the index associated with a stream.
    func stream(_ streamID: Int32) -> StreamIndex? {
        // SAFETY: the tag is a number created by `setStream` and is never dereferenced.
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
        // SAFETY: the session is open; see `pointer`.
        assert(streamID > 0, "stream 0 is the connection")
        _ = unsafe nghttp2_submit_rst_stream(pointer, noFlags, Int32(streamID), code)
    }

    /// Queues WINDOW_UPDATE.
    func submitWindowUpdate(_ streamID: Int32, _ credit: Int) {
        // SAFETY: the session is open; see `pointer`.
        assert(credit > 0 && credit <= Int32.max, "a window grows by its update")
        _ = unsafe nghttp2_submit_window_update(pointer, noFlags, streamID, Int32(credit))
    }

    /// Queues HEADERS with these fields, whose values are ranges of `texts`. If `body` names a
    /// stream, also queues DATA with the response body of that stream.
    func submitResponse(
        _ streamID: UInt32, _ fields: [ResponseField], texts: borrowing ByteBuffer,
        body: StreamIndex?
    ) {
        assert(
            fields.allSatisfy { $0.value.upperBound <= texts.count },
            "the value of each field is within the texts")
        // SAFETY: nghttp2 copies names, values and the provider before the call returns, and writes
        // to none of them. The fields' ranges are within `texts`, which contains at least the
        // status; a name is constant.
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

/// A header field of a response.
struct ResponseField {
    let name: StaticString
    /// The range of the value in the texts of the response.
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
