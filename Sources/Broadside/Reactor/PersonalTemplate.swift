import APNs
internal import Glibc
import HPACK
import TLS

/// The HEADERS frame of a campaign whose rows have more of their own than their token, with holes
/// for the token, the row's part of the apns-id, the stream's number, and the row's collapse ID. The
/// payload follows from the row's pieces.
///
///     HEADERS header | 83 87 04 len "/3/device/" token | middle [ len collapse ID ] rest
@safe struct PersonalTemplate: LaidDownTemplate {
    private let bytes: UnsafeMutableRawBufferPointer
    private let prefixCount: Int
    private let middleCount: Int
    /// Where the twelve digits of the row number lie in the middle.
    private let rowDigitsOffset: Int
    private let hasCollapse: Bool

    /// Lays a template down. `block` was encoded with an empty hole for the path, and one of any
    /// size for the collapse ID where rows have their own.
    init(block: EncodedBlock) {
        guard let path = block.hole(.path), let identifier = block.hole(.identifier) else {
            preconditionFailure("a request has a path and an apns-id")
        }
        precondition(path.isEmpty && block.bytes[path.lowerBound - 1] == 0)
        let collapse = block.hole(.collapseIdentifier)
        hasCollapse = collapse != nil
        let prefix = block.bytes[..<(path.lowerBound - 1)]
        // A length below 127 takes one octet (RFC 7541, section 5.1), which is left out here.
        let middleEnd = collapse.map { $0.lowerBound - 1 } ?? block.bytes.count
        precondition(collapse.map { block.bytes[middleEnd] == UInt8($0.count) } ?? true)
        let middle = block.bytes[path.upperBound..<middleEnd]
        let rest = block.bytes[(collapse?.upperBound ?? middleEnd)...]
        prefixCount = prefix.count
        middleCount = middle.count
        rowDigitsOffset = identifier.lowerBound + NotificationID.rowDigitsOffset - path.upperBound
        precondition(rowDigitsOffset >= 0 && identifier.upperBound <= middleEnd)
        let all = prefix + middle + rest
        unsafe bytes = .allocate(byteCount: all.count, alignment: 16)
        unsafe bytes.copyBytes(from: all)
    }

    func deallocate() {
        unsafe cleanse(bytes)
        unsafe bytes.deallocate()
    }

    /// The most bytes that the HEADERS frame and the header of a DATA frame take.
    var countLimit: Int {
        unsafe 2 * RequestTemplate.frameHeaderCount + bytes.count + 2
            + RequestTemplate.pathPrefix.utf8CodeUnitCount + RowSlab.tokenDigitsLimit + 1
            + NotificationHeaders.maximumCollapseIDCount
    }

    /// Writes HEADERS, and the header of the DATA frame that follows: of `dataCount` octets, with
    /// the stream's end where that is all of the payload.
    ///
    /// - Returns: The number of bytes written.
    func write(
        token: UnsafeRawBufferPointer, row: UInt64, collapse: UnsafeRawBufferPointer,
        streamID: UInt32, dataCount: Int, isWhole: Bool, to output: UnsafeMutableRawPointer
    ) -> Int {
        precondition(hasCollapse == (collapse.count > 0))
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

        // HEADERS with END_HEADERS: the body follows in DATA (RFC 9113, section 6.2).
        unsafe FrameHeaderPatch.length(
            at - output - RequestTemplate.frameHeaderCount, at: output)
        unsafe output.storeBytes(of: 1, toByteOffset: 3, as: UInt8.self)
        unsafe output.storeBytes(of: 4, toByteOffset: 4, as: UInt8.self)
        unsafe FrameHeaderPatch.streamID(streamID, at: output)
        unsafe FrameHeaderPatch.data(
            count: dataCount, isLast: isWhole, streamID: streamID, at: at)
        return unsafe at + RequestTemplate.frameHeaderCount - output
    }
}

extension ReactorSettings {
    /// Lays down the HEADERS that come next on a connection whose table is `mirror`, and brings the
    /// mirror up to date. Where that changed the table the template serves once.
    ///
    /// - Parameter collapseCount: The octets of the row's collapse ID; 0 for none.
    func personalTemplate(
        authorization: (value: [UInt8]?, version: UInt32), collapseCount: Int,
        mirror: inout DynamicTableMirror
    ) -> (template: PersonalTemplate, changedTable: Bool) {
        let generation = mirror.generation
        // One that serves many rows must not depend on the size of this row's: an entry is only
        // made where the largest would fit.
        var count = collapseCount == 0 ? nil : collapseCount
        if count != nil, mirror.index(of: .collapseIdentifier) == nil {
            var trial = mirror
            let largest = NotificationHeaders.maximumCollapseIDCount
            _ = encode(authorization, collapseCount: largest, mirror: &trial)
            if trial.index(of: .collapseIdentifier) == nil { count = largest }
        }
        var block = encode(authorization, collapseCount: count, mirror: &mirror)
        fillIdentifier(&block)
        return (PersonalTemplate(block: block), mirror.generation != generation)
    }

    private func encode(
        _ authorization: (value: [UInt8]?, version: UInt32), collapseCount: Int?,
        mirror: inout DynamicTableMirror
    ) -> EncodedBlock {
        RequestBlockEncoder.encode(
            fields(
                authorization: authorization.value, version: authorization.version,
                personalCollapseCount: collapseCount),
            mirror: &mirror, discipline: discipline, huffman: true)
    }
}
