internal import Glibc

/// Writes all bytes to a descriptor.
package func writeAll(_ bytes: [UInt8], to descriptor: Int32, name: String) throws(BroadsideError) {
    try writeAll(bytes.rawSpan, to: descriptor, name: name)
}

/// Writes all bytes to a descriptor, in as many calls as necessary.
package func writeAll(_ bytes: RawSpan, to descriptor: Int32, name: String) throws(BroadsideError) {
    if let number = writeWhole(bytes, to: descriptor) {
        throw BroadsideError("\(name): \(describe(errno: number))", exitCode: 5)
    }
}

/// Writes all bytes to a file.
///
/// - Returns: The error number; nil if all bytes were written. After an error, the first bytes may
///   have been written.
package func writeWhole(_ bytes: RawSpan, to descriptor: Int32) -> Int32? {
    assert(descriptor >= 0, "only an open file is written to")
    var written = 0
    while written < bytes.byteCount {
        let count = SystemCall.write(descriptor, bytes.extracting(written...))
        if count < 0, errno == EINTR { continue }
        guard count > 0 else { return count < 0 ? errno : ENOSPC }
        written += count
    }
    return nil
}

/// Makes an open file that may include device tokens readable only by its owner. Leaves unchanged a
/// pipe, a device, another user's file, and a file that another program has opened and passed as
/// `/dev/stdout`.
package func makePrivate(_ descriptor: Int32, _ path: String) {
    let isInMemory = path.hasPrefix("/dev/shm/")
    guard isInMemory || !path.hasPrefix("/dev/"),
        FileIdentity(descriptor: descriptor)?.isRegular == true
    else { return }
    _ = fchmod(descriptor, 0o600)
}

/// Checks that something new can be created at a path. Creates nothing.
///
/// - Parameter advice: The remedy if the folder is unusable.
package func checkFolder(
    of path: String, option: String, _ advice: String = "name a place to write to"
) throws(BroadsideError) {
    var name = path[...]
    while name.count > 1, name.hasSuffix("/") { name = name.dropLast() }
    let folder = name.parts(atLast: "/").map { "\($0.before)/." } ?? "."
    guard SystemCall.isWritable(folder: folder) else {
        throw .file(option: option, path, errno: errno, advice)
    }
}
