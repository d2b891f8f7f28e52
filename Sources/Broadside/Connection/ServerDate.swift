import BroadsideHPACK
import BroadsideHTTP2
import BroadsideSupport

/// The server's clock, from the `date` header of its responses (RFC 9110 section 6.6.1). APNs is
/// not known to send this header, but proxies and other servers do.
struct ServerDate {
    /// Number of received bytes that are searched for the header. Later bytes are ignored.
    private static let byteCountMax = 1 << 16
    private static let headersFrame: UInt8 = 1
    /// `date` in HPACK's static table (RFC 7541 appendix A).
    private static let staticIndex = 33

    private var received: [UInt8] = []

    /// Adds decrypted bytes from the server.
    mutating func take(_ bytes: RawSpan) {
        guard received.count + bytes.byteCount <= Self.byteCountMax else { return }
        received.append(bytes)
    }

    /// Date in seconds since 1970; nil if no response had one.
    var unixSeconds: UInt64? {
        var found: UInt64?
        var at = 0
        while at + 9 <= received.count {
            let count = Int(received[at]) << 16 | Int(received[at + 1]) << 8 | Int(received[at + 2])
            let (type, flags) = (received[at + 3], received[at + 4])
            at += 9
            guard at + count <= received.count else { break }
            // Skips HEADERS frames with padding or a priority, which responses do not need.
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
