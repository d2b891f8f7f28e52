import BroadsideHTTP2
import BroadsideSupport

/// Records header fields and body of a response, from the frames of a connection that has one
/// request at a time.
///
/// The connection's state machine keeps only the status and the first 512 bytes of the body. A
/// device push needs no more. The state machine has already checked the frames that arrive here.
struct ResponseRecorder {
    /// The frame types and flags of RFC 9113 section 6.
    private static let (data, headers, continuation): (UInt8, UInt8, UInt8) = (0, 1, 9)
    private static let (endHeaders, padded, priority): (UInt8, UInt8, UInt8) = (4, 8, 0x20)

    private let reader = HeaderBlockReader()
    private let bodyLimit: Int
    /// Bytes of a frame that is not complete.
    private var pending: [UInt8] = []
    /// Fragments of a header block that is not complete.
    private var block: [UInt8] = []
    /// Header fields of the response, with the pseudo-header fields.
    private(set) var fields: [HeaderBlockReader.Field] = []
    private(set) var body: [UInt8] = []
    /// Whether the body is longer than the limit. Bytes beyond the limit are not kept.
    private(set) var isTooLong = false

    /// - Parameter bodyLimit: Maximum size of a body, in bytes.
    init(bodyLimit: Int) {
        assert(bodyLimit > 0, "an error body is read, too")
        self.bodyLimit = bodyLimit
    }

    /// Forgets the previous response.
    mutating func begin() {
        (fields, body, isTooLong) = ([], [], false)
    }

    /// Takes decrypted bytes from the server.
    mutating func take(_ bytes: [UInt8]) {
        pending += bytes
        var at = 0
        while at + 9 <= pending.count {
            let count =
                Int(pending[at]) << 16 | Int(pending[at + 1]) << 8 | Int(pending[at + 2])
            guard at + 9 + count <= pending.count else { break }
            take(
                type: pending[at + 3], flags: pending[at + 4],
                pending[at + 9..<at + 9 + count])
            at += 9 + count
        }
        pending.removeFirst(at)
    }

    private mutating func take(type: UInt8, flags: UInt8, _ payload: ArraySlice<UInt8>) {
        switch type {
        case Self.data:
            let content = Self.withoutPadding(payload, flags)
            let taken = content.prefix(bodyLimit - body.count)
            body += taken
            isTooLong = isTooLong || taken.count < content.count
            assert(body.count <= bodyLimit, "a body has a limit")
        case Self.headers:
            var content = Self.withoutPadding(payload, flags)
            if flags & Self.priority != 0 { content = content.dropFirst(5) }
            block = Array(content)
            if flags & Self.endHeaders != 0 { readBlock() }
        case Self.continuation:
            block += payload
            if flags & Self.endHeaders != 0 { readBlock() }
        default: break
        }
    }

    private mutating func readBlock() {
        let found = reader?.read(block.rawSpan) ?? []
        block = []
        // Interim responses and trailers are skipped.
        guard let status = found.first(where: { $0.name == ":status" }),
            status.value.first != UInt8(ascii: "1")
        else { return }
        fields = found
    }

    private static func withoutPadding(
        _ payload: ArraySlice<UInt8>, _ flags: UInt8
    ) -> ArraySlice<UInt8> {
        guard flags & padded != 0, let count = payload.first else { return payload }
        return payload.dropFirst().dropLast(Int(count))
    }
}
