internal import BroadsideAPNs
import BroadsideHPACK
import BroadsideTLS
internal import Glibc

/// HEADERS frame of a campaign with templated payloads. The payload is rendered from the row's
/// field values. The frame consists of the parts below. Angle brackets mark the holes that each
/// row fills:
///
///     HEADERS header with <stream ID>
///     83 87 04 len "/3/device/" <token>
///     middle with <the row's part of the apns-id>
///     <len, collapse ID> if rows have their own collapse ID
///     rest
///     <len, payload length> if the header block ends with content-length
@safe struct PersonalTemplate: PrecomputedRequest {
    // SAFETY: prefix, middle and rest, contiguous, set in `init` and never changed. Freed by
    // `deallocate`, which the owner calls once, when no copy of the template is in use.
    private let bytes: UnsafeMutableRawBufferPointer
    private let prefixCount: Int
    private let middleCount: Int
    /// Offset of the row number's twelve digits in the template's middle part.
    private let rowDigitsOffset: Int
    private let hasCollapse: Bool
    /// Whether the header block ends with the value of content-length.
    private let hasLength: Bool

    /// Creates a template. `block` was encoded with an empty hole for the path. If rows have their
    /// own collapse ID, it also has a hole of any size for the collapse ID.
    init(block: EncodedBlock) {
        guard let path = block.hole(.path), let identifier = block.hole(.identifier) else {
            preconditionFailure("a request has a path and an apns-id")
        }
        precondition(path.isEmpty && block.bytes[path.lowerBound - 1] == 0)
        let collapse = block.hole(.collapseIdentifier)
        hasCollapse = collapse != nil
        let prefix = block.bytes[..<(path.lowerBound - 1)]
        // A length below 127 takes one byte (RFC 7541, section 5.1), which is omitted here.
        let middleEnd =
            (collapse ?? block.hole(.contentLength)).map { $0.lowerBound - 1 } ?? block.bytes.count
        precondition(collapse.map { block.bytes[middleEnd] == UInt8($0.count) } ?? true)
        let middle = block.bytes[path.upperBound..<middleEnd]
        let length = block.hole(.contentLength)
        hasLength = length != nil
        precondition(length.map { $0.upperBound == block.bytes.count } ?? true)
        let end = length.map { $0.lowerBound - 1 } ?? block.bytes.count
        let rest = block.bytes[(collapse?.upperBound ?? middleEnd)..<end]
        prefixCount = prefix.count
        middleCount = middle.count
        rowDigitsOffset = identifier.lowerBound + NotificationID.rowDigitsOffset - path.upperBound
        precondition(rowDigitsOffset >= 0 && identifier.upperBound <= middleEnd)
        let all = prefix + middle + rest
        // SAFETY: the allocation has exactly as many bytes as are copied to it.
        unsafe bytes = .allocate(byteCount: all.count, alignment: 16)
        unsafe bytes.copyBytes(from: all)
    }

    func deallocate() {
        // SAFETY: the template owns all of it.
        unsafe cleanse(bytes)
        unsafe bytes.deallocate()
    }

    /// Maximum number of bytes of the HEADERS frame and a DATA frame header.
    var countLimit: Int {
        // SAFETY: only the count is used.
        unsafe 2 * RequestTemplate.frameHeaderCount + bytes.count + 2
            + RequestTemplate.pathPrefix.utf8CodeUnitCount + RowSlab.tokenDigitsLimit + 1
            + NotificationHeaders.maximumCollapseIDCount + DecimalText.limit
    }

    /// Writes HEADERS and the header of the DATA frame that follows. The DATA frame has `dataCount`
    /// bytes, and END_STREAM if that is the whole payload.
    ///
    /// - Parameter payloadCount: Bytes of the whole payload.
    /// - Returns: The number of bytes written.
    func write(
        token: UnsafeRawBufferPointer, row: UInt64, collapse: UnsafeRawBufferPointer,
        streamID: UInt32, dataCount: Int, payloadCount: Int, to output: UnsafeMutableRawPointer
    ) -> Int {
        precondition(hasCollapse == (collapse.count > 0))
        // SAFETY: the caller has room for `countLimit` bytes, which counts each part at its
        // maximum: a token of 200 digits, a collapse ID of 64 bytes, a length of eight digits.
        // `init` checks that the digits of the row number are inside the middle.
        let start = unsafe bytes.baseAddress!
        var at = unsafe output + RequestTemplate.frameHeaderCount
        unsafe at.copyMemory(from: start, byteCount: prefixCount)
        unsafe at = RequestTemplate.writePath(token, to: at + prefixCount)
        unsafe at.copyMemory(from: start + prefixCount, byteCount: middleCount)
        unsafe NotificationID.writeRowDigits(row, into: at + rowDigitsOffset)
        unsafe at += middleCount
        if hasCollapse {
            unsafe at.storeBytes(of: UInt8(collapse.count), as: UInt8.self)
            unsafe (at + 1).copyMemory(from: collapse.baseAddress!, byteCount: collapse.count)
            unsafe at += 1 + collapse.count
        }
        let restStart = prefixCount + middleCount
        let restCount = unsafe bytes.count - restStart
        unsafe at.copyMemory(from: start + restStart, byteCount: restCount)
        unsafe at += restCount
        if hasLength { unsafe at += DecimalText.write(payloadCount, to: at) }

        // HEADERS with END_HEADERS: the body follows in DATA (RFC 9113, section 6.2).
        unsafe FrameHeaderPatch.length(
            at - output - RequestTemplate.frameHeaderCount, at: output)
        unsafe output.storeBytes(of: 1, toByteOffset: 3, as: UInt8.self)
        unsafe output.storeBytes(of: 4, toByteOffset: 4, as: UInt8.self)
        unsafe FrameHeaderPatch.streamID(streamID, at: output)
        unsafe FrameHeaderPatch.data(
            count: dataCount, isLast: dataCount == payloadCount, streamID: streamID, at: at)
        return unsafe at + RequestTemplate.frameHeaderCount - output
    }
}

/// A number as the value of a header field: a length byte and the digits, without Huffman coding.
enum DecimalText {
    /// Maximum number of bytes: the length byte and eight digits. The size of the largest frame,
    /// 2^24 - 1, has eight digits.
    static let limit = 9

    /// Writes the length and the digits; returns the number of bytes.
    static func write(_ number: Int, to output: UnsafeMutableRawPointer) -> Int {
        precondition(number >= 0 && number < 100_000_000)
        var count = 1
        var largest = 9
        while number > largest {
            count += 1
            largest = 10 * largest + 9
        }
        // SAFETY: the caller has room for `limit` bytes, and there are at most eight digits.
        unsafe output.storeBytes(of: UInt8(count), as: UInt8.self)
        var rest = number
        for offset in stride(from: count, to: 0, by: -1) {
            unsafe output.storeBytes(
                of: UInt8(ascii: "0") + UInt8(rest % 10), toByteOffset: offset, as: UInt8.self)
            rest /= 10
        }
        return 1 + count
    }
}

extension ReactorSettings {
    /// Encodes the next HEADERS for a connection whose table is `mirror`, and updates the mirror.
    /// A template that changed the table is valid for one request.
    ///
    /// - Parameters:
    ///   - collapseCount: Bytes of the row's collapse ID; 0 for none.
    ///   - topic: The row's own topic; nil if all rows have the same topic.
    ///   - priority: The priority of the row's arm; nil if the campaign's priority applies.
    func personalTemplate(
        authorization: (value: [UInt8]?, version: UInt32), collapseCount: Int,
        topic: [UInt8]? = nil, priority: [UInt8]? = nil, mirror: inout DynamicTableMirror
    ) -> (template: PersonalTemplate, changedTable: Bool) {
        let generation = mirror.generation
        // A template for many rows must not depend on the size of this row's collapse ID. The table
        // gets an entry for it only if the largest ID would fit, too.
        var count = collapseCount == 0 ? nil : collapseCount
        if count != nil, mirror.index(of: .collapseIdentifier) == nil {
            var trial = mirror
            let largest = NotificationHeaders.maximumCollapseIDCount
            _ = encode(
                authorization, collapseCount: largest, topic: topic, priority: priority,
                mirror: &trial)
            if trial.index(of: .collapseIdentifier) == nil { count = largest }
        }
        var block = encode(
            authorization, collapseCount: count, topic: topic, priority: priority, mirror: &mirror)
        fillIdentifier(&block)
        // The topic is a hole, so it is not inserted into the server's table. Later rows have other
        // topics.
        if let topic, let hole = block.hole(.topic) {
            block.bytes.replaceSubrange(hole, with: topic)
        }
        // The server's table has only the campaign's priority.
        if let priority, let hole = block.hole(.priority) {
            block.bytes.replaceSubrange(hole, with: priority)
        }
        return (PersonalTemplate(block: block), mirror.generation != generation)
    }

    private func encode(
        _ authorization: (value: [UInt8]?, version: UInt32), collapseCount: Int?,
        topic: [UInt8]?, priority: [UInt8]?, mirror: inout DynamicTableMirror
    ) -> EncodedBlock {
        RequestBlockEncoder.encode(
            fields(
                authorization: authorization.value, version: authorization.version,
                personalTopicCount: topic?.count, personalCollapseCount: collapseCount,
                ownPriorityCount: priority?.count, personalLength: true),
            mirror: &mirror, indexingPolicy: indexingPolicy, huffman: true)
    }
}
