import CBroadsideNghttp2

/// The server's end of a scripted connection: reads what the reactor sends, writes what a test has it
/// say. It decides nothing.
final class ScriptedServer {
    /// A request whose last byte has arrived.
    struct Request {
        /// Which connection of the run carried it, from 0.
        var connection: Int
        var stream: UInt32
        var token: String
        var authorization: String?
        /// Nanoseconds since the run began.
        var time: UInt64
    }

    enum Event {
        case request(stream: UInt32, token: String, authorization: String?)
        case ping([UInt8])
        case settings
        case data(count: Int)
        case goAway
    }

    private var received: [UInt8] = []
    private var hasPreface = false
    private var inflater: OpaquePointer!
    private var open: [UInt32: [String: String]] = [:]

    init() { nghttp2_hd_inflate_new(&inflater) }

    deinit { nghttp2_hd_inflate_del(inflater) }

    /// Takes what the client sent; what it means, frame by frame.
    func take(_ bytes: [UInt8]) -> [Event] {
        received += bytes
        var events: [Event] = []
        var at = 0
        if !hasPreface {
            guard received.count >= 24 else { return [] }
            hasPreface = true
            at = 24
        }
        while received.count - at >= 9 {
            let header = Array(received[at..<(at + 9)])
            let count = Int(header[0]) << 16 | Int(header[1]) << 8 | Int(header[2])
            guard received.count - at - 9 >= count else { break }
            let body = Array(received[(at + 9)..<(at + 9 + count)])
            let stream = header[5...].reduce(UInt32(0)) { $0 << 8 | UInt32($1) }
            events += frame(type: header[3], flags: header[4], stream: stream, body)
            at += 9 + count
        }
        received.removeFirst(at)
        return events
    }

    private func frame(type: UInt8, flags: UInt8, stream: UInt32, _ body: [UInt8]) -> [Event] {
        switch type {
        case 0:
            var events = [Event.data(count: body.count)]
            if flags & 1 != 0, let fields = open.removeValue(forKey: stream) {
                events.append(
                    .request(
                        stream: stream,
                        token: String((fields[":path"] ?? "").dropFirst("/3/device/".count)),
                        authorization: fields["authorization"]))
            }
            return events
        case 1:
            open[stream] = inflate(body)
            return []
        case 4: return flags & 1 == 0 ? [.settings] : []
        case 6: return flags & 1 == 0 ? [.ping(body)] : []
        case 7: return [.goAway]
        default: return []
        }
    }

    private func inflate(_ block: [UInt8]) -> [String: String] {
        var fields: [String: String] = [:]
        var rest = block[...]
        while true {
            var field = nghttp2_nv()
            var flags: Int32 = 0
            let read = rest.withUnsafeBufferPointer {
                nghttp2_hd_inflate_hd2(inflater, &field, &flags, $0.baseAddress, $0.count, 1)
            }
            precondition(read >= 0, "the request's header block is sound")
            rest = rest.dropFirst(read)
            if flags & Int32(NGHTTP2_HD_INFLATE_EMIT.rawValue) != 0 {
                fields[text(field.name, field.namelen)] = text(field.value, field.valuelen)
            }
            if flags & Int32(NGHTTP2_HD_INFLATE_FINAL.rawValue) != 0 {
                nghttp2_hd_inflate_end_headers(inflater)
                return fields
            }
        }
    }

    private func text(_ start: UnsafePointer<UInt8>, _ count: Int) -> String {
        String(decoding: UnsafeBufferPointer(start: start, count: count), as: UTF8.self)
    }

    // MARK: What it says

    static func frame(type: UInt8, flags: UInt8 = 0, stream: UInt32 = 0, _ body: [UInt8])
        -> [UInt8]
    {
        let count = UInt32(body.count)
        return [UInt8(count >> 16), UInt8(count >> 8 & 255), UInt8(count & 255), type, flags]
            + word(stream) + body
    }

    static func word(_ value: UInt32) -> [UInt8] {
        [24, 16, 8, 0].map { UInt8(value >> $0 & 255) }
    }

    static func settings(maxStreams: UInt32?, streamWindow: UInt32? = nil) -> [UInt8] {
        frame(
            type: 4,
            (maxStreams.map { [0, 3] + word($0) } ?? [])
                + (streamWindow.map { [0, 4] + word($0) } ?? []))
    }

    static let settingsAcknowledgement = frame(type: 4, flags: 1, [])

    static func pong(_ opaque: [UInt8]) -> [UInt8] { frame(type: 6, flags: 1, opaque) }

    static func windowUpdate(_ count: Int, stream: UInt32 = 0) -> [UInt8] {
        frame(type: 8, stream: stream, word(UInt32(count)))
    }

    static func reset(_ stream: UInt32, code: UInt32) -> [UInt8] {
        frame(type: 3, stream: stream, word(code))
    }

    static func goAway(lastStream: UInt32, code: UInt32, reason: String?) -> [UInt8] {
        goAway(
            lastStream: lastStream, code: code,
            text: reason.map { #"{"reason":"\#($0)"}"# } ?? "")
    }

    static func goAway(lastStream: UInt32, code: UInt32, text: String) -> [UInt8] {
        frame(type: 7, word(lastStream) + word(code) + Array(text.utf8))
    }

    /// An answer, as vector V19 of APNs' answers is made: literals without indexing, no Huffman.
    static func answer(
        _ stream: UInt32, status: Int, reason: String?, retryAfter: String?
    ) -> [UInt8] {
        var block: [UInt8] = status == 200 ? [0x88] : [0x08, 3] + Array("\(status)".utf8)
        if let retryAfter { block += [0x0f, 0x26, UInt8(retryAfter.utf8.count)] + retryAfter.utf8 }
        guard let reason else { return frame(type: 1, flags: 5, stream: stream, block) }
        return frame(type: 1, flags: 4, stream: stream, block)
            + frame(
                type: 0, flags: 1, stream: stream, Array(#"{"reason":"\#(reason)"}"#.utf8))
    }
}
