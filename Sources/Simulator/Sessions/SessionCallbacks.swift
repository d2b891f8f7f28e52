internal import CBroadsideNghttp2

/// The callbacks through which nghttp2 reports events to a `ServerSession`.
enum SessionCallbacks {
    /// Creates a server session with callbacks to `owner`, which outlives it.
    static func makeSession(for owner: ServerSession) -> OpaquePointer {
        var callbacks: OpaquePointer?
        // SAFETY: nghttp2 copies callbacks and options into the session, so both are deleted here,
        // once. The owner deletes the session before its own end, and the session calls back only
        // while the owner calls it.
        precondition(unsafe nghttp2_session_callbacks_new(&callbacks) == 0, "no memory")
        defer { unsafe nghttp2_session_callbacks_del(callbacks) }
        unsafe nghttp2_session_callbacks_set_on_begin_frame_callback(callbacks, beginFrame)
        unsafe nghttp2_session_callbacks_set_on_begin_headers_callback(callbacks, beginHeaders)
        unsafe nghttp2_session_callbacks_set_on_header_callback(callbacks, header)
        unsafe nghttp2_session_callbacks_set_on_data_chunk_recv_callback(callbacks, data)
        unsafe nghttp2_session_callbacks_set_on_frame_recv_callback(callbacks, frame)
        unsafe nghttp2_session_callbacks_set_on_stream_close_callback(callbacks, streamClose)
        unsafe nghttp2_session_callbacks_set_select_padding_callback(callbacks, padding)
        var options: OpaquePointer?
        precondition(unsafe nghttp2_option_new(&options) == 0, "no memory")
        defer { unsafe nghttp2_option_del(options) }
        // If a scenario controls window credit, nghttp2 must not return it.
        unsafe nghttp2_option_set_no_auto_window_update(options, owner.window == nil ? 0 : 1)
        // Without this option, nghttp2 keeps closed streams, for priorities. It would keep as many
        // as may be open, and it sees no limit on open streams; see `UnfinishedStreams`.
        unsafe nghttp2_option_set_no_closed_streams(options, 1)
        var session: OpaquePointer?
        let context = unsafe Unmanaged.passUnretained(owner).toOpaque()
        precondition(
            unsafe nghttp2_session_server_new2(&session, callbacks, context, options) == 0,
            "no memory")
        return unsafe session!
    }

    private static func owner(_ data: UnsafeMutableRawPointer?) -> ServerSession {
        // SAFETY: `makeSession` passed the owner as context, and the owner deletes its session
        // before its own end.
        unsafe Unmanaged<ServerSession>.fromOpaque(data!).takeUnretainedValue()
    }

    /// The parts of a frame that callbacks read.
    private struct Frame {
        let header: nghttp2_frame_hd
        /// True if the frame begins a request.
        let isRequest: Bool

        // SAFETY: the frame belongs to nghttp2 and is valid for the duration of the callback.
        init(_ frame: UnsafePointer<nghttp2_frame>?) {
            unsafe header = frame!.pointee.hd
            isRequest =
                unsafe header.type == UInt8(NGHTTP2_HEADERS.rawValue)
                && frame!.pointee.headers.cat == NGHTTP2_HCAT_REQUEST
        }

        func has(_ flag: nghttp2_flag) -> Bool { header.flags & UInt8(flag.rawValue) != 0 }
    }

    private static let beginFrame: nghttp2_on_begin_frame_callback = { _, header, data in
        // SAFETY: nghttp2's frame header is valid for the duration of the callback, and the context
        // is the owner.
        let header = unsafe header!.pointee
        if header.type == UInt8(NGHTTP2_HEADERS.rawValue) {
            unsafe owner(data).beganHeadersFrame(UInt32(header.stream_id))
        }
        return 0
    }

    private static let beginHeaders: nghttp2_on_begin_headers_callback = { _, frame, data in
        // SAFETY: nghttp2's frame is valid for the duration of the callback, and the context is the
        // owner.
        let frame = unsafe Frame(frame)
        if frame.isRequest { unsafe owner(data).beganHeaders(frame.header.stream_id) }
        return 0
    }

    private static let header: nghttp2_on_header_callback = {
        _, frame, name, nameCount, value, valueCount, _, data in
        // SAFETY: nghttp2 keeps the frame and both texts valid until the callback returns; they are
        // copied before that.
        guard unsafe Frame(frame).isRequest else { return 0 }
        unsafe owner(data).receivedHeader(
            name: RawSpan(_unsafeStart: name!, byteCount: nameCount),
            value: RawSpan(_unsafeStart: value!, byteCount: valueCount))
        return 0
    }

    private static let data: nghttp2_on_data_chunk_recv_callback = {
        _, _, streamID, bytes, count, data in
        // SAFETY: `bytes` is used only during the callback.
        unsafe owner(data).receivedData(
            streamID, RawSpan(_unsafeBytes: UnsafeRawBufferPointer(start: bytes, count: count)))
        return 0
    }

    /// Pads DATA only, because only DATA counts against windows. `FrameShaper` pads HEADERS.
    private static let padding: nghttp2_select_padding_callback = { _, frame, room, data in
        // SAFETY: nghttp2's frame is valid for the duration of the callback, and the context is the
        // owner.
        let header = unsafe Frame(frame).header
        var count = header.length
        if header.type == UInt8(NGHTTP2_DATA.rawValue),
            let shape = unsafe owner(data).context.run?.scenario.responses
        {
            count += shape.padding
        }
        return min(count, room)
    }

    private static let frame: nghttp2_on_frame_recv_callback = { _, frame, data in
        // SAFETY: nghttp2's frame is valid for the duration of the callback, and the context is the
        // owner.
        let frame = unsafe Frame(frame)
        let owner = unsafe owner(data)
        switch frame.header.type {
        case UInt8(NGHTTP2_HEADERS.rawValue), UInt8(NGHTTP2_DATA.rawValue):
            guard let stream = owner.session.stream(frame.header.stream_id) else { return 0 }
            if frame.isRequest { owner.endedHeaders(stream) }
            if frame.has(NGHTTP2_FLAG_END_STREAM) { owner.endedRequest(stream) }
        case UInt8(NGHTTP2_RST_STREAM.rawValue):
            guard let stream = owner.session.stream(frame.header.stream_id) else { return 0 }
            owner.streams[stream].isResetByClient = true
        case UInt8(NGHTTP2_SETTINGS.rawValue):
            if frame.has(NGHTTP2_FLAG_ACK) { owner.streamLimits.acknowledge() }
        default: break
        }
        return 0
    }

    private static let streamClose: nghttp2_on_stream_close_callback = { _, streamID, _, data in
        // SAFETY: the context is the owner; see `owner`.
        let owner = unsafe owner(data)
        if let stream = owner.session.stream(streamID) { owner.closedStream(stream) }
        return 0
    }

    /// Reads the next bytes of a response body.
    static let readBody: nghttp2_data_source_read_callback = {
        _, _, target, room, flags, source, data in
        // SAFETY: `submitResponse` set `fd`; nghttp2 provides `room` bytes at `target` and flags to
        // be written.
        let stream = unsafe StreamIndex(value: Int(source!.pointee.fd))
        let target = unsafe UnsafeMutableRawBufferPointer(start: target, count: room)
        let (count, isEnd) = unsafe owner(data).readResponse(stream, into: target)
        if isEnd { unsafe flags!.pointee |= UInt32(NGHTTP2_DATA_FLAG_EOF.rawValue) }
        return count
    }
}
