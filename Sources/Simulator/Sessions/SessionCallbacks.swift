internal import CNghttp2

/// The callbacks by which nghttp2 tells a `ServerSession` what it read.
enum SessionCallbacks {
    /// A server session that reports to `owner`, which outlives it.
    static func makeSession(for owner: ServerSession) -> OpaquePointer {
        var callbacks: OpaquePointer?
        precondition(unsafe nghttp2_session_callbacks_new(&callbacks) == 0, "no memory")
        defer { unsafe nghttp2_session_callbacks_del(callbacks) }
        unsafe nghttp2_session_callbacks_set_on_begin_headers_callback(callbacks, beginHeaders)
        unsafe nghttp2_session_callbacks_set_on_header_callback(callbacks, header)
        unsafe nghttp2_session_callbacks_set_on_data_chunk_recv_callback(callbacks, data)
        unsafe nghttp2_session_callbacks_set_on_frame_recv_callback(callbacks, frame)
        unsafe nghttp2_session_callbacks_set_on_stream_close_callback(callbacks, streamClose)
        unsafe nghttp2_session_callbacks_set_select_padding_callback(callbacks, padding)
        var options: OpaquePointer?
        precondition(unsafe nghttp2_option_new(&options) == 0, "no memory")
        defer { unsafe nghttp2_option_del(options) }
        // Where a scenario gives windows back, nghttp2 must not.
        unsafe nghttp2_option_set_no_auto_window_update(options, owner.window == nil ? 0 : 1)
        var session: OpaquePointer?
        let context = unsafe Unmanaged.passUnretained(owner).toOpaque()
        precondition(
            unsafe nghttp2_session_server_new2(&session, callbacks, context, options) == 0,
            "no memory")
        return unsafe session!
    }

    static func owner(_ data: UnsafeMutableRawPointer?) -> ServerSession {
        // SAFETY: the owner deletes its nghttp2 session before it goes.
        unsafe Unmanaged<ServerSession>.fromOpaque(data!).takeUnretainedValue()
    }

    private static func stream(
        _ session: OpaquePointer?, _ streamID: Int32
    ) -> UnsafeMutablePointer<StreamState>? {
        // SAFETY: the only stream data that is ever set is a `StreamState` of the owner's slab.
        unsafe nghttp2_session_get_stream_user_data(session, streamID)?
            .assumingMemoryBound(to: StreamState.self)
    }

    private static func isRequest(_ frame: UnsafePointer<nghttp2_frame>) -> Bool {
        unsafe frame.pointee.hd.type == UInt8(NGHTTP2_HEADERS.rawValue)
            && frame.pointee.headers.cat == NGHTTP2_HCAT_REQUEST
    }

    private static let beginHeaders: nghttp2_on_begin_headers_callback = { _, frame, data in
        guard let frame = unsafe frame, unsafe isRequest(frame) else { return 0 }
        unsafe owner(data).beganHeaders(frame.pointee.hd.stream_id)
        return 0
    }

    private static let header: nghttp2_on_header_callback = {
        _, frame, name, nameCount, value, valueCount, _, data in
        guard let frame = unsafe frame, unsafe isRequest(frame) else { return 0 }
        // SAFETY: nghttp2 keeps both texts until the callback returns; they are copied by then.
        unsafe owner(data).receivedHeader(
            name: UnsafeRawBufferPointer(start: name, count: nameCount),
            value: UnsafeRawBufferPointer(start: value, count: valueCount))
        return 0
    }

    private static let data: nghttp2_on_data_chunk_recv_callback = {
        session, _, streamID, bytes, count, data in
        // SAFETY: `bytes` is used within the callback only.
        unsafe owner(data).receivedData(
            stream(session, streamID), UnsafeRawBufferPointer(start: bytes, count: count))
        return 0
    }

    /// DATA alone: padding of HEADERS is `FrameShaper`'s, since only DATA counts for windows.
    private static let padding: nghttp2_select_padding_callback = { _, frame, room, data in
        guard let header = unsafe frame?.pointee.hd else { return 0 }
        var count = header.length
        if header.type == UInt8(NGHTTP2_DATA.rawValue),
            let shape = unsafe owner(data).context.run?.scenario.answers
        {
            count += shape.padding
        }
        return min(count, room)
    }

    private static let frame: nghttp2_on_frame_recv_callback = { session, frame, data in
        guard let frame = unsafe frame else { return 0 }
        let header = unsafe frame.pointee.hd
        switch header.type {
        case UInt8(NGHTTP2_HEADERS.rawValue), UInt8(NGHTTP2_DATA.rawValue):
            guard let stream = unsafe stream(session, header.stream_id) else { return 0 }
            if unsafe isRequest(frame) { unsafe owner(data).endedHeaders(stream) }
            if header.flags & UInt8(NGHTTP2_FLAG_END_STREAM.rawValue) != 0 {
                unsafe owner(data).endedRequest(stream)
            }
        case UInt8(NGHTTP2_SETTINGS.rawValue):
            if header.flags & UInt8(NGHTTP2_FLAG_ACK.rawValue) != 0 {
                unsafe owner(data).acknowledgedSettings()
            }
        default: break
        }
        return 0
    }

    private static let streamClose: nghttp2_on_stream_close_callback = {
        session, streamID, _, data in
        if let stream = unsafe stream(session, streamID) {
            unsafe owner(data).closedStream(stream)
        }
        return 0
    }
}

/// A response as nghttp2 wants it.
enum ResponseSubmission {
    /// Queues HEADERS, and DATA where the answer has a body.
    static func submit(
        _ pending: PendingAnswer, to stream: UnsafeMutablePointer<StreamState>,
        session: OpaquePointer?, uniqueID: NotificationIDText?
    ) {
        unsafe withUnsafeTemporaryAllocation(byteCount: 256, alignment: 16) { scratch in
            let base = scratch.baseAddress!
            // SAFETY: of 256 bytes: status from 0, identifier from 32, unique ID from 72,
            // retry-after from 108, body from 128; each is shorter than the way to the next.
            let statusCount = unsafe Decimal.write(UInt64(pending.answer.status), to: base)
            let identifier = unsafe base + 32
            for position in 0..<36 {
                unsafe identifier.storeBytes(
                    of: pending.identifier[position], toByteOffset: position, as: UInt8.self)
            }
            let body = unsafe base + 128
            let bodyCount =
                pending.omitsBody ? 0 : unsafe pending.answer.writeBody(to: body)
            for position in 0..<bodyCount {
                unsafe stream.pointee.responseBody[position] = body.load(
                    fromByteOffset: position, as: UInt8.self)
            }
            unsafe stream.pointee.responseCount = bodyCount
            var fields = unsafe [
                field(":status", base, statusCount),
                // APNs' responses have the ID as a literal; indexing it would be of no use.
                field("apns-id", identifier, 36, flags: NGHTTP2_NV_FLAG_NO_INDEX),
            ]
            if pending.answer.status == 200, let uniqueID {
                let target = unsafe base + 72
                for position in 0..<36 {
                    unsafe target.storeBytes(
                        of: uniqueID[position], toByteOffset: position, as: UInt8.self)
                }
                unsafe fields.append(
                    field("apns-unique-id", target, 36, flags: NGHTTP2_NV_FLAG_NO_INDEX))
            }
            if let seconds = pending.answer.retryAfterSeconds {
                let target = unsafe base + 108
                let count = unsafe Decimal.write(UInt64(seconds), to: target)
                unsafe fields.append(field("retry-after", target, count))
            }
            if pending.answer.reason != nil {
                unsafe fields.append(
                    field("content-type", contentType, "application/json".utf8.count))
            }
            unsafe fields.withUnsafeBufferPointer { fields in
                guard bodyCount > 0 else {
                    _ = unsafe nghttp2_submit_response(
                        session, Int32(pending.streamID), fields.baseAddress, fields.count, nil)
                    return
                }
                var provider = unsafe nghttp2_data_provider(
                    source: nghttp2_data_source(ptr: UnsafeMutableRawPointer(stream)),
                    read_callback: readBody)
                _ = unsafe nghttp2_submit_response(
                    session, Int32(pending.streamID), fields.baseAddress, fields.count, &provider)
            }
        }
    }

    private static var contentType: UnsafeMutableRawPointer {
        let text: StaticString = "application/json"
        return unsafe UnsafeMutableRawPointer(mutating: text.utf8Start)
    }

    private static func field(
        _ name: StaticString, _ value: UnsafeMutableRawPointer, _ count: Int,
        flags: nghttp2_nv_flag = NGHTTP2_NV_FLAG_NONE
    ) -> nghttp2_nv {
        // SAFETY: nghttp2 copies both texts before the call returns; it writes to neither.
        unsafe nghttp2_nv(
            name: UnsafeMutablePointer(mutating: name.utf8Start),
            value: value.assumingMemoryBound(to: UInt8.self), namelen: name.utf8CodeUnitCount,
            valuelen: count, flags: UInt8(flags.rawValue))
    }

    private static let readBody: nghttp2_data_source_read_callback = {
        _, _, target, room, flags, source, data in
        // A scenario may want a body in many small frames.
        let most = unsafe SessionCallbacks.owner(data).context.run?.scenario.answers.dataOctets
        // SAFETY: `submit` set it; the slab keeps it in place until the stream has closed.
        let stream = unsafe source!.pointee.ptr.assumingMemoryBound(to: StreamState.self)
        let offset = unsafe stream.pointee.responseOffset
        let count = unsafe min(room, stream.pointee.responseCount - offset, most ?? .max)
        for position in 0..<count {
            // SAFETY: `count` is at most `room` and what is left of the body.
            unsafe target![position] = stream.pointee.responseBody[offset + position]
        }
        unsafe stream.pointee.responseOffset += count
        if unsafe stream.pointee.responseOffset == stream.pointee.responseCount {
            unsafe flags!.pointee |= UInt32(NGHTTP2_DATA_FLAG_EOF.rawValue)
        }
        return count
    }
}
