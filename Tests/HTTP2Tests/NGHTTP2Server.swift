import CBroadsideNghttp2

/// The server side of nghttp2, without I/O: a peer that we did not write, strict about windows,
/// limits and header blocks.
final class NGHTTP2Server {
    /// What the server does with a request.
    enum Answer {
        case status(Int, body: [UInt8], padding: Int, chunk: Int)
        case refuse
        case reset
    }

    /// What a request was made of.
    struct Request {
        var fields: [(name: String, value: String)] = []
        var body: [UInt8] = []
    }

    private var session: OpaquePointer!
    private var open: [Int32: Request] = [:]
    private(set) var requests: [Int32: Request] = [:]
    /// Streams whose answer is still to be given, in the order of their requests.
    private(set) var waiting: [Int32] = []
    private var bodies: [Int32: (bytes: [UInt8], sent: Int, chunk: Int)] = [:]
    private var padding: [Int32: Int] = [:]
    /// nghttp2 complained about a frame of ours.
    private(set) var complaints: [String] = []

    init(settings: [(UInt16, UInt32)]) {
        var callbacks: OpaquePointer!
        nghttp2_session_callbacks_new(&callbacks)
        defer { nghttp2_session_callbacks_del(callbacks) }
        Self.register(callbacks)
        var option: OpaquePointer!
        nghttp2_option_new(&option)
        defer { nghttp2_option_del(option) }
        nghttp2_session_server_new2(
            &session, callbacks, Unmanaged.passUnretained(self).toOpaque(), option)
        submit(settings: settings)
    }

    deinit { nghttp2_session_del(session) }

    func submit(settings: [(UInt16, UInt32)]) {
        let entries = settings.map {
            nghttp2_settings_entry(settings_id: Int32($0.0), value: $0.1)
        }
        nghttp2_submit_settings(session, 0, entries, entries.count)
    }

    func submitGoAway() {
        nghttp2_submit_goaway(
            session, 0, nghttp2_session_get_last_proc_stream_id(session), 0, nil, 0)
    }

    /// Takes bytes of the client; false once nghttp2 gives up.
    func receive(_ bytes: [UInt8]) -> Bool {
        nghttp2_session_mem_recv(session, bytes, bytes.count) == bytes.count
    }

    /// What the server has to say now.
    func takeOutput() -> [UInt8] {
        var output: [UInt8] = []
        while true {
            var start: UnsafePointer<UInt8>?
            let count = nghttp2_session_mem_send(session, &start)
            guard count > 0, let start else { return output }
            output += UnsafeBufferPointer(start: start, count: count)
        }
    }

    func answer(_ stream: Int32, _ answer: Answer) {
        waiting.removeAll { $0 == stream }
        switch answer {
        case .refuse:
            nghttp2_submit_rst_stream(session, 0, stream, NGHTTP2_REFUSED_STREAM.rawValue)
        case .reset:
            nghttp2_submit_rst_stream(session, 0, stream, NGHTTP2_INTERNAL_ERROR.rawValue)
        case .status(let status, let body, let padding, let chunk):
            self.padding[stream] = padding
            bodies[stream] = (body, 0, chunk)
            submitResponse(stream, status, hasBody: !body.isEmpty)
        }
    }

    private func submitResponse(_ stream: Int32, _ status: Int, hasBody: Bool) {
        let fields = [
            (":status", "\(status)"), ("apns-id", "EABEAE54-14A8-11E5-B60B-1697F925EC7B"),
            ("content-type", "application/json"), ("x-stream", "\(stream % 4)"),
        ]
        let storage = fields.map { Array($0.0.utf8) + Array($0.1.utf8) }
        withPointers(to: storage) { pointers in
            let pairs = zip(fields, pointers).map { field, start in
                nghttp2_nv(
                    name: start, value: start + field.0.utf8.count, namelen: field.0.utf8.count,
                    valuelen: field.1.utf8.count, flags: 0)
            }
            var provider = nghttp2_data_provider()
            provider.read_callback = { _, stream, buffer, length, flags, _, user in
                NGHTTP2Server.from(user).read(stream, buffer!, length, flags!)
            }
            if hasBody {
                nghttp2_submit_response(session, stream, pairs, pairs.count, &provider)
            } else {
                nghttp2_submit_response(session, stream, pairs, pairs.count, nil)
            }
        }
    }

    private func read(
        _ stream: Int32, _ buffer: UnsafeMutablePointer<UInt8>, _ length: Int,
        _ flags: UnsafeMutablePointer<UInt32>
    ) -> Int {
        let body = bodies[stream]!
        let count = min(length, body.chunk, body.bytes.count - body.sent)
        for offset in 0..<count { buffer[offset] = body.bytes[body.sent + offset] }
        bodies[stream]!.sent += count
        if body.sent + count == body.bytes.count {
            flags.pointee |= NGHTTP2_DATA_FLAG_EOF.rawValue
        }
        return count
    }

    private func withPointers(
        to storage: [[UInt8]], _ body: ([UnsafeMutablePointer<UInt8>]) -> Void
    ) {
        let pointers = storage.map { bytes in
            let pointer = UnsafeMutablePointer<UInt8>.allocate(capacity: bytes.count)
            pointer.initialize(from: bytes, count: bytes.count)
            return pointer
        }
        body(pointers)
        for pointer in pointers { pointer.deallocate() }
    }

    private static func from(_ user: UnsafeMutableRawPointer?) -> NGHTTP2Server {
        Unmanaged<NGHTTP2Server>.fromOpaque(user!).takeUnretainedValue()
    }

    private static func register(_ callbacks: OpaquePointer) {
        nghttp2_session_callbacks_set_on_header_callback(callbacks) {
            _, frame, name, nameCount, value, valueCount, _, user in
            let field = (
                String(decoding: UnsafeBufferPointer(start: name, count: nameCount), as: UTF8.self),
                String(
                    decoding: UnsafeBufferPointer(start: value, count: valueCount), as: UTF8.self)
            )
            NGHTTP2Server.from(user).open[frame!.pointee.hd.stream_id, default: Request()].fields
                .append(field)
            return 0
        }
        nghttp2_session_callbacks_set_on_data_chunk_recv_callback(callbacks) {
            _, _, stream, data, count, user in
            NGHTTP2Server.from(user).open[stream, default: Request()].body += UnsafeBufferPointer(
                start: data, count: count)
            return 0
        }
        nghttp2_session_callbacks_set_on_frame_recv_callback(callbacks) { _, frame, user in
            let header = frame!.pointee.hd
            guard header.flags & UInt8(NGHTTP2_FLAG_END_STREAM.rawValue) != 0,
                header.type == NGHTTP2_DATA.rawValue || header.type == NGHTTP2_HEADERS.rawValue
            else { return 0 }
            let server = NGHTTP2Server.from(user)
            server.requests[header.stream_id] = server.open.removeValue(forKey: header.stream_id)
            server.waiting.append(header.stream_id)
            return 0
        }
        nghttp2_session_callbacks_set_on_invalid_frame_recv_callback(callbacks) {
            _, frame, code, user in
            NGHTTP2Server.from(user).complaints.append(
                "type \(frame!.pointee.hd.type) on \(frame!.pointee.hd.stream_id): \(code)")
            return 0
        }
        nghttp2_session_callbacks_set_on_stream_close_callback(callbacks) {
            _, stream, _, user in
            let server = NGHTTP2Server.from(user)
            server.waiting.removeAll { $0 == stream }
            server.open[stream] = nil
            return 0
        }
        nghttp2_session_callbacks_set_select_padding_callback(callbacks) {
            _, frame, limit, user in
            let header = frame!.pointee.hd
            return min(
                limit,
                Int(header.length) + (NGHTTP2Server.from(user).padding[header.stream_id] ?? 0))
        }
    }
}
