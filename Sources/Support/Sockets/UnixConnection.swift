internal import Glibc

/// A nonblocking connection to a Unix stream socket.
final class UnixConnection {
    let descriptor: Int32

    /// Connects to the socket at a path. On failure, returns nil and sets `errno`: `EAGAIN` if the
    /// queue of the listening process is full, `ECONNREFUSED` if no process listens.
    init?(_ path: String) {
        guard let address = unixAddress(path) else {
            errno = ENAMETOOLONG
            return nil
        }
        descriptor = unixSocket()
        guard descriptor >= 0, SystemCall.connect(descriptor, address) == 0 else { return nil }
    }

    deinit {
        guard descriptor >= 0 else { return }
        let code = errno
        close(descriptor)
        errno = code
    }
}

/// Maximum length of a socket path in bytes.
package let unixPathLimit = 107

/// Returns the address of a socket in the file system; nil if the path is too long.
func unixAddress(_ path: String) -> sockaddr_un? {
    var address = sockaddr_un()
    address.sun_family = sa_family_t(AF_UNIX)
    let bytes = Array(path.utf8)
    guard !bytes.isEmpty, bytes.count < MemoryLayout.size(ofValue: address.sun_path) else {
        return nil
    }
    // SAFETY: the path is shorter than `sun_path`, which is zero after it.
    unsafe withUnsafeMutableBytes(of: &address.sun_path) { room in
        unsafe room.copyBytes(from: bytes)
    }
    return address
}

/// Creates a nonblocking stream socket; -1 on failure.
func unixSocket() -> Int32 {
    socket(
        AF_UNIX,
        Int32(SOCK_STREAM.rawValue) | Int32(SOCK_CLOEXEC.rawValue) | Int32(SOCK_NONBLOCK.rawValue),
        0)
}
