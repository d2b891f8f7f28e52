internal import BroadsideAPNs
package import BroadsideHPACK
internal import BroadsideLegacyGateway
import BroadsideTLS
internal import Glibc

/// The bytes that all requests of a campaign share on connections with equal header tables. Both
/// frames are encoded once, with holes for the device token, the row's part of the apns-id and the
/// stream ID.
///
///     HEADERS header | 83 87 04 len "/3/device/" token | rest of the block | DATA header | payload
///                                                        '---------- tail -----------------------'
///
/// The tail is written with one copy; the length of the head depends on the token.
@safe package struct RequestTemplate {
    /// Bytes before the length of the `:path` value.
    // SAFETY: both buffers are set in `init` and never changed. Freed by `deallocate`, which the
    // owner calls once, when no copy of the template is in use.
    private let prefix: UnsafeMutableRawBufferPointer
    private let tail: UnsafeMutableRawBufferPointer
    /// Offset of the row number's twelve digits in the tail.
    private let rowDigitsOffset: Int
    /// Number of bytes of the tail that belong to the header block.
    private let blockTailCount: Int
    let payloadCount: Int

    static let pathPrefix: StaticString = "/3/device/"
    static let frameHeaderCount = 9

    /// Creates a template. `block` was encoded with an empty hole for the path.
    package init(block: EncodedBlock, payload: [UInt8]) {
        guard let path = block.hole(.path), let identifier = block.hole(.identifier) else {
            preconditionFailure("a request has a path and an apns-id")
        }
        precondition(path.isEmpty && block.bytes[path.lowerBound - 1] == 0)
        // SAFETY: the template owns the copies.
        unsafe prefix = Self.copy(block.bytes[..<(path.lowerBound - 1)])
        let rest = block.bytes[path.upperBound...]
        var bytes = Array(rest)
        blockTailCount = bytes.count
        rowDigitsOffset = identifier.lowerBound + NotificationID.rowDigitsOffset - path.upperBound
        precondition(rowDigitsOffset >= 0)
        payloadCount = payload.count
        bytes += [
            UInt8(payload.count >> 16), UInt8(payload.count >> 8 & 0xff),
            UInt8(payload.count & 0xff),
            0, 1, 0, 0, 0, 0,
        ]
        bytes += payload
        unsafe tail = Self.copy(bytes[...])
    }

    private static func copy(_ bytes: ArraySlice<UInt8>) -> UnsafeMutableRawBufferPointer {
        let memory = UnsafeMutableRawBufferPointer.allocate(byteCount: bytes.count, alignment: 16)
        // SAFETY: the allocation has exactly as many bytes as are copied to it.
        unsafe memory.copyBytes(from: bytes)
        return unsafe memory
    }

    /// Frees the memory after overwriting it, because it contains the provider token.
    package func deallocate() {
        // SAFETY: the template owns all of it.
        unsafe cleanse(prefix)
        unsafe cleanse(tail)
        unsafe prefix.deallocate()
        unsafe tail.deallocate()
    }

    /// Maximum number of bytes of one request.
    package var requestCountLimit: Int {
        // SAFETY: only the counts are used.
        unsafe Self.frameHeaderCount + prefix.count + 2 + Self.pathPrefix.utf8CodeUnitCount
            + RowSlab.tokenDigitsLimit + tail.count
    }

    /// Writes a whole request at `output`, which must have room for `requestCountLimit` bytes.
    ///
    /// - Returns: The number of bytes written.
    package func write(
        token: UnsafeRawBufferPointer, row: UInt64, streamID: UInt32,
        to output: UnsafeMutableRawPointer
    ) -> Int {
        // SAFETY: the caller has room for `requestCountLimit` bytes.
        unsafe write(
            token: token, row: row, streamID: streamID, dataCount: payloadCount, to: output)
    }

    /// Writes HEADERS and the first `dataCount` bytes of the payload. If these bytes are the whole
    /// payload, the DATA frame has END_STREAM. `dataCount` is less than the payload's size if the
    /// server's windows are too small for the payload.
    func write(
        token: UnsafeRawBufferPointer, row: UInt64, streamID: UInt32, dataCount: Int,
        to output: UnsafeMutableRawPointer
    ) -> Int {
        // SAFETY: the caller has room for `requestCountLimit` bytes, which counts each part at its
        // maximum: a token has at most 200 digits, and `dataCount` is at most `payloadCount`. The
        // tail contains the digits of the row number and, behind the block, the header of DATA.
        var at = unsafe output + Self.frameHeaderCount
        unsafe at.copyMemory(from: prefix.baseAddress!, byteCount: prefix.count)
        unsafe at += prefix.count

        unsafe at = Self.writePath(token, to: at)

        let isWhole = dataCount == payloadCount
        let tailCount = unsafe tail.count - (payloadCount - dataCount)
        unsafe at.copyMemory(from: tail.baseAddress!, byteCount: tailCount)
        unsafe NotificationID.writeRowDigits(row, into: at + rowDigitsOffset)
        let dataHeader = unsafe at + blockTailCount
        unsafe FrameHeaderPatch.streamID(streamID, at: dataHeader)
        unsafe at += tailCount

        if !isWhole {
            unsafe FrameHeaderPatch.length(dataCount, at: dataHeader)
            unsafe dataHeader.storeBytes(of: 0, toByteOffset: 4, as: UInt8.self)
        }
        let blockCount = unsafe dataHeader - (output + Self.frameHeaderCount)
        unsafe FrameHeaderPatch.length(blockCount, at: output)
        // HEADERS with END_HEADERS: the body follows in DATA (RFC 9113, section 6.2).
        unsafe output.storeBytes(of: 1, toByteOffset: 3, as: UInt8.self)
        unsafe output.storeBytes(of: 4, toByteOffset: 4, as: UInt8.self)
        unsafe FrameHeaderPatch.streamID(streamID, at: output)
        return unsafe at - output
    }

    /// Writes the path and its length; returns the address after them.
    @inline(__always)
    static func writePath(
        _ token: UnsafeRawBufferPointer, to output: UnsafeMutableRawPointer
    ) -> UnsafeMutableRawPointer {
        // SAFETY: the caller has room for a length of two bytes, the constant part of the path and
        // the token, whose count is checked if it could be too large. A slab's token has an address
        // even if it is empty.
        var at = unsafe output
        // The path's length: an integer with a 7-bit prefix, no Huffman (RFC 7541, 5.2). A path has
        // at most 210 bytes, so it takes one byte or two.
        let pathCount = pathPrefix.utf8CodeUnitCount + token.count
        if pathCount < 127 {
            unsafe at.storeBytes(of: UInt8(pathCount), as: UInt8.self)
            unsafe at += 1
        } else {
            let excess = pathCount - 127
            precondition(excess < 128)
            unsafe at.storeBytes(of: 127, as: UInt8.self)
            unsafe at.storeBytes(of: UInt8(excess), toByteOffset: 1, as: UInt8.self)
            unsafe at += 2
        }
        unsafe at.copyMemory(
            from: pathPrefix.utf8Start, byteCount: pathPrefix.utf8CodeUnitCount)
        unsafe at += pathPrefix.utf8CodeUnitCount
        unsafe at.copyMemory(from: token.baseAddress!, byteCount: token.count)
        unsafe at += token.count
        return unsafe at
    }
}

/// Writes the two numbers of a frame header (RFC 9113, section 4.1) that differ between requests.
enum FrameHeaderPatch {
    static func length(_ count: Int, at header: UnsafeMutableRawPointer) {
        // SAFETY: the caller has the nine bytes of a frame header there; no alignment is needed.
        unsafe header.storeBytes(of: UInt8(truncatingIfNeeded: count >> 16), as: UInt8.self)
        unsafe header.storeBytes(
            of: UInt16(truncatingIfNeeded: count).bigEndian, toByteOffset: 1, as: UInt16.self)
    }

    static func streamID(_ streamID: UInt32, at header: UnsafeMutableRawPointer) {
        // SAFETY: the caller has the nine bytes of a frame header there; no alignment is needed.
        unsafe header.storeBytes(of: streamID.bigEndian, toByteOffset: 5, as: UInt32.self)
    }

    /// Writes a complete DATA frame header.
    static func data(
        count: Int, isLast: Bool, streamID: UInt32, at header: UnsafeMutableRawPointer
    ) {
        // SAFETY: the caller has the nine bytes of a frame header there.
        unsafe length(count, at: header)
        unsafe header.storeBytes(of: 0, toByteOffset: 3, as: UInt8.self)
        unsafe header.storeBytes(of: isLast ? 1 : 0, toByteOffset: 4, as: UInt8.self)
        unsafe self.streamID(streamID, at: header)
    }
}
