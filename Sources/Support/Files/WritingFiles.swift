internal import Glibc

/// Writes all bytes to a descriptor.
package func writeAll(_ bytes: [UInt8], to descriptor: Int32, name: String) throws(BroadsideError) {
    let result = unsafe bytes.withUnsafeBytes { buffer in
        Result { () throws(BroadsideError) in
            unsafe try writeAll(buffer, to: descriptor, name: name)
        }
    }
    try result.get()
}

/// Writes all bytes, however many calls it takes.
package func writeAll(
    _ bytes: UnsafeRawBufferPointer, to descriptor: Int32, name: String
) throws(BroadsideError) {
    guard try unsafe writeUnlessClosed(bytes, to: descriptor, name: name) else {
        throw BroadsideError("\(name): \(describe(errno: EPIPE))", exitCode: 5)
    }
}

/// Writes all bytes to where a reader may go away.
///
/// - Returns: false where it has.
package func writeUnlessClosed(
    _ bytes: UnsafeRawBufferPointer, to descriptor: Int32, name: String
) throws(BroadsideError) -> Bool {
    var written = 0
    while written < bytes.count {
        let rest = unsafe UnsafeRawBufferPointer(rebasing: bytes[written...])
        let count = unsafe write(descriptor, rest.baseAddress, rest.count)
        if count < 0, errno == EINTR { continue }
        if count < 0, errno == EPIPE { return false }
        guard count > 0 else {
            throw BroadsideError("\(name): \(describe(errno: errno))", exitCode: 5)
        }
        written += count
    }
    return true
}
