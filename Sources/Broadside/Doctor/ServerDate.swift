import BroadsideHPACK
import BroadsideHTTP2
import BroadsideSupport

/// The server's clock, where it tells it: the `date` of its responses (RFC 9110 section 6.6.1).
/// APNs is not known to send one; proxies and other servers do.
struct ServerDate {
    /// The bytes of frames that are looked at; what follows later is passed over.
    private static let byteCountMax = 1 << 16
    private static let headersFrame: UInt8 = 1
    /// `date` in HPACK's static table (RFC 7541 appendix A).
    private static let staticIndex = 33

    private var received: [UInt8] = []

    /// Takes what the server said, as it came out of TLS.
    mutating func take(_ bytes: RawSpan) {
        guard received.count + bytes.byteCount <= Self.byteCountMax else { return }
        received.append(bytes)
    }

    /// Seconds since 1970; nil where no response told.
    var unixSeconds: UInt64? {
        var found: UInt64?
        var at = 0
        while at + 9 <= received.count {
            let count = Int(received[at]) << 16 | Int(received[at + 1]) << 8 | Int(received[at + 2])
            let (type, flags) = (received[at + 3], received[at + 4])
            at += 9
            guard at + count <= received.count else { break }
            // Padded and prioritised headers are nothing that a response needs.
            if type == Self.headersFrame, flags & 0x28 == 0 {
                found = Self.date(in: Array(received[at..<at + count])) ?? found
            }
            at += count
        }
        return found
    }

    private static func date(in block: [UInt8]) -> UInt64? {
        let span = block.rawSpan
        var walker = BlockWalker()
        while let field = try? walker.next(span) {
            guard field.representation != .indexed, field.index == staticIndex else { continue }
            let range = field.value.offset..<field.value.offset + field.value.count
            guard field.value.isHuffman else { return HTTPDate.parse(span.extracting(range)) }
            let text = try? [UInt8](capacity: 64) { (output) throws(HPACKError) in
                try Huffman.decode(span.extracting(range), into: &output)
            }
            return text.flatMap { HTTPDate.parse($0.rawSpan) }
        }
        return nil
    }
}
