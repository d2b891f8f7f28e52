internal import Glibc
import Ledgers
import Support

/// A Unix stream socket on which the owner of a run may ask and order: a line comes in, a line of
/// JSON goes out. Looked at by the main thread a few times a second; nothing here ever waits.
final class ControlSocket {
    private struct Client {
        var descriptor: Int32
        var received: [UInt8] = []
        /// The look at which it connected, or said something last.
        var heard: UInt64
    }

    private let path: String
    private let descriptor: Int32
    /// The socket's file, so that only our own is removed.
    private let device: UInt
    private let inode: UInt
    /// Keeps what the path leads through.
    private let ledger: LedgerDirectory?
    private var clients: [Client] = []
    private var looks: UInt64 = 0

    /// Connections that are served at the same time; a further one takes the place of the one that has
    /// been silent for longest.
    static let clientsLimit = 8
    /// Connections that are taken in one look.
    static let connectionsAtOnce = 16
    /// The longest line.
    static let lineLimit = 1024
    /// Requests of one connection that are answered in one look.
    static let requestsAtOnce = 16

    /// Makes the socket of a ledger that this process has locked.
    convenience init(in ledger: LedgerDirectory) throws(BroadsideError) {
        try self.init(ledger.controlPath(limit: unixPathLimit), in: ledger)
    }

    /// Makes the socket; a stale one is replaced, anything else stays untouched.
    init(_ path: String, in ledger: LedgerDirectory? = nil) throws(BroadsideError) {
        self.path = path
        self.ledger = ledger
        guard let address = unixAddress(path) else {
            throw .usage(
                "control",
                "\(path): longer than the \(unixPathLimit) bytes of a socket's path: name a shorter one"
            )
        }
        try Self.clearPlace(path)
        let descriptor = socket(
            AF_UNIX,
            Int32(SOCK_STREAM.rawValue) | Int32(SOCK_CLOEXEC.rawValue)
                | Int32(SOCK_NONBLOCK.rawValue), 0)
        guard descriptor >= 0 else { throw Self.failure(path) }
        // No other thread makes files yet: the mask is ours alone, and the file is never open to others.
        let mask = umask(0o177)
        let isBound = SystemCall.bind(descriptor, address) == 0
        let bindError = errno
        umask(mask)
        guard isBound, listen(descriptor, 16) == 0 else {
            if !isBound { errno = bindError }
            let failure = Self.failure(path)
            close(descriptor)
            throw failure
        }
        let information = SystemCall.linkStatus(path) ?? stat()
        self.descriptor = descriptor
        device = UInt(information.st_dev)
        inode = UInt(information.st_ino)
    }

    deinit {
        for client in clients { close(client.descriptor) }
        close(descriptor)
        if let information = SystemCall.linkStatus(path), UInt(information.st_dev) == device,
            UInt(information.st_ino) == inode
        {
            SystemCall.unlink(path)
        }
    }

    /// Removes a socket that nothing listens on any more.
    private static func clearPlace(_ path: String) throws(BroadsideError) {
        guard let information = SystemCall.linkStatus(path) else { return }
        guard information.st_mode & S_IFMT == S_IFSOCK else {
            throw .usage("control", "\(path) exists and is not a socket: name another place")
        }
        let probe = UnixConnection(path)
        // A full queue is that of a process which takes no connections at the moment.
        guard probe == nil, errno != EAGAIN else {
            throw .usage(
                "control",
                "\(path) is in use by a running process: name another place, or end that "
                    + "one")
        }
        guard errno == ECONNREFUSED, information.st_uid == geteuid() else { throw failure(path) }
        guard SystemCall.unlink(path) == 0 else { throw failure(path) }
    }

    private static func failure(_ path: String) -> BroadsideError {
        .file(option: "control", path, errno: errno, "name a place for the socket")
    }

    /// Answers what has come in.
    ///
    /// - Parameter answer: Makes one line of JSON of a request.
    func serve(_ answer: (String) -> String) {
        looks += 1
        for index in clients.indices.reversed() { serve(index, answer) }
        for _ in 0..<Self.connectionsAtOnce {
            let client = accept(descriptor, nil, nil)
            guard client >= 0 else { break }
            _ = fcntl(client, F_SETFD, FD_CLOEXEC)
            _ = fcntl(client, F_SETFL, O_NONBLOCK)
            if clients.count == Self.clientsLimit { dropQuietest() }
            clients.append(Client(descriptor: client, heard: looks))
            // What it has said already is answered before another one may take its place.
            serve(clients.count - 1, answer)
        }
    }

    private func serve(_ index: Int, _ answer: (String) -> String) {
        let (isOpen, hasSpoken) = Self.serve(&clients[index], answer)
        if hasSpoken { clients[index].heard = looks }
        if !isOpen { drop(index) }
    }

    private func drop(_ index: Int) {
        close(clients[index].descriptor)
        clients.remove(at: index)
    }

    private func dropQuietest() {
        guard let index = clients.indices.min(by: { clients[$0].heard < clients[$1].heard })
        else { return }
        drop(index)
    }

    /// Reads and answers whole lines.
    ///
    /// - Returns: Whether the connection is of further use, and whether anything came.
    private static func serve(
        _ client: inout Client, _ answer: (String) -> String
    ) -> (isOpen: Bool, hasSpoken: Bool) {
        var room = [UInt8](repeating: 0, count: lineLimit)
        let count = SystemCall.receive(client.descriptor, &room, 0)
        if count < 0 { return (errno == EAGAIN || errno == EINTR, false) }
        client.received += room[..<count]
        var answered = 0
        while let end = client.received.firstIndex(of: 0x0a) {
            var line = client.received[..<end]
            if line.last == 0x0d { line.removeLast() }
            answered += 1
            guard line.count <= lineLimit, answered <= requestsAtOnce else {
                _ = reply(
                    "{\"ok\":false,\"error\":\"too much at once: send one line per request\"}",
                    to: client)
                return (false, true)
            }
            let text = answer(String(decoding: line, as: UTF8.self))
            client.received.removeSubrange(...end)
            guard reply(text, to: client) else { return (false, true) }
        }
        guard client.received.count <= lineLimit else {
            _ = reply("{\"ok\":false,\"error\":\"the line is too long\"}", to: client)
            return (false, true)
        }
        return (count > 0, count > 0)
    }

    /// A client that does not read its answers is given up.
    private static func reply(_ text: String, to client: Client) -> Bool {
        let bytes = Array(text.utf8) + [0x0a]
        return SystemCall.send(client.descriptor, bytes.rawSpan) == bytes.count
    }
}

/// The longest path of a socket, bytes.
let unixPathLimit = 107

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
