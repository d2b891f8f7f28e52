internal import Glibc

/// A connection to a Unix stream socket, which never waits.
final class UnixConnection {
    let descriptor: Int32

    /// nil if it can't be made; errno says why: `EAGAIN` if the queue of a process is full that takes no
    /// connections, `ECONNREFUSED` if nothing listens.
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

/// The longest path of a socket, bytes.
package let unixPathLimit = 107

/// The address of a socket in the file system; nil where the path is too long for one.
func unixAddress(_ path: String) -> sockaddr_un? {
    var address = sockaddr_un()
    address.sun_family = sa_family_t(AF_UNIX)
    let bytes = Array(path.utf8)
    guard !bytes.isEmpty, bytes.count < MemoryLayout.size(ofValue: address.sun_path) else {
        return nil
    }
    // SAFETY: the path is shorter than `sun_path`, which is zero behind it.
    unsafe withUnsafeMutableBytes(of: &address.sun_path) { room in
        unsafe room.copyBytes(from: bytes)
    }
    return address
}

/// A stream socket that never waits; -1 if there is none to be had.
func unixSocket() -> Int32 {
    socket(
        AF_UNIX,
        Int32(SOCK_STREAM.rawValue) | Int32(SOCK_CLOEXEC.rawValue) | Int32(SOCK_NONBLOCK.rawValue),
        0)
}
