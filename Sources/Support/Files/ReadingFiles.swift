internal import Glibc

/// Reads a small file as a whole.
package func readFile(_ path: String, option: String, limit: Int) throws(BroadsideError) -> [UInt8]
{
    try readFile(path, shownAs: InputName(path, option: option), limit: limit)
}

/// Reads a small file as a whole; `name` identifies it in errors.
///
/// - Parameter mustStay: Whether to reject a file modified while it was read, because the result
///   may mix old and new content.
package func readFile(
    _ path: String, shownAs name: InputName, limit: Int, mustStay: Bool = false
) throws(BroadsideError) -> [UInt8] {
    let descriptor = SystemCall.open(path, O_RDONLY | O_CLOEXEC)
    guard descriptor >= 0 || path != "-" else {
        throw .request(name, ": standard input is not read here: name a file")
    }
    guard descriptor >= 0 else { throw .file(name, errno: errno, "name a readable file") }
    defer { close(descriptor) }
    let stamp = mustStay ? FileStamp(descriptor: descriptor) : nil
    let bytes = try readFile(descriptor, shownAs: name, limit: limit)
    if let how = stamp?.change(descriptor: descriptor, path: path) { throw .changed(name, how) }
    return bytes
}

/// Reads the rest of a small open file.
package func readFile(
    _ descriptor: Int32, shownAs name: InputName, limit: Int
) throws(BroadsideError) -> [UInt8] {
    assert(descriptor >= 0 && limit >= 0, "only an open file is read")
    var bytes: [UInt8] = []
    var piece = [UInt8](repeating: 0, count: 65_536)
    while true {
        let count = try readPiece(descriptor, &piece, shownAs: name)
        if count == 0 { return bytes }
        bytes += piece[..<count]
        guard bytes.count <= limit else {
            throw .request(name, " is larger than \(limit) bytes: check that it is the right file")
        }
    }
}

/// Reads the next bytes of an open file into the beginning of `room`.
///
/// - Returns: The byte count; 0 at the end of the file.
package func readPiece(
    _ descriptor: Int32, _ room: inout [UInt8], shownAs name: InputName
) throws(BroadsideError) -> Int {
    while true {
        let count = SystemCall.read(descriptor, &room)
        if count >= 0 { return count }
        guard errno == EINTR else { throw .file(name, errno: errno, "name a readable file") }
    }
}
