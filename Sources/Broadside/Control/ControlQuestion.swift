internal import Glibc
import Ledgers
import Support

/// A connection to a control socket, which never waits.
final class UnixConnection {
    let descriptor: Int32

    /// nil if it can't be made; errno says why: `EAGAIN` if the queue of a process is full that takes no
    /// connections, `ECONNREFUSED` if nothing listens.
    init?(_ path: String) {
        guard let address = unixAddress(path) else {
            errno = ENAMETOOLONG
            return nil
        }
        descriptor = socket(
            AF_UNIX,
            Int32(SOCK_STREAM.rawValue) | Int32(SOCK_CLOEXEC.rawValue)
                | Int32(SOCK_NONBLOCK.rawValue), 0)
        guard descriptor >= 0, SystemCall.connect(descriptor, address) == 0 else { return nil }
    }

    deinit {
        guard descriptor >= 0 else { return }
        let code = errno
        close(descriptor)
        errno = code
    }
}

/// A request to a process with a control socket, and the wait for its response. One thread asks many
/// at the same time, so that processes that are suspended cost as much time as one of them.
struct ControlQuestion {
    /// Why there is no response.
    enum Failure: Error, Equatable {
        /// Nothing listens; the errno says why.
        case unreachable(Int32)
        /// It took no connection, or sent no response, in time.
        case silent
        /// It ended the connection, or sent more than a response may have.
        case ended
    }

    /// The response, a line of JSON, or why there is none; nil while it is awaited.
    private(set) var outcome: Result<String, Failure>?

    private let path: String
    private let request: [UInt8]
    /// Keeps what the path leads through.
    private let directory: LedgerDirectory?
    private let deadline: UInt64
    private var connection: UnixConnection?
    private var received: [UInt8] = []

    /// Seconds that a process has to take the connection and to respond.
    static let patience = 10
    /// The longest response that is read, in bytes.
    static let responseLimit = 1 << 20
    /// Questions that wait for a response at the same time; each needs two descriptors.
    static let limit = 256
    /// Milliseconds until a process whose queue was full is tried again.
    private static let retryInterval = 50

    /// - Parameters:
    ///   - path: The socket.
    ///   - directory: The ledger in which it is, if the path leads through its descriptor.
    init(_ path: String, request: String, in directory: LedgerDirectory? = nil) {
        self.path = path
        self.request = Array(request.utf8) + [0x0a]
        self.directory = directory
        deadline = Clock.now().nanoseconds + UInt64(Self.patience) * second
    }

    /// Asks several processes.
    ///
    /// - Parameters:
    ///   - count: How many.
    ///   - question: Makes the question with a number; nil: there is nobody to ask.
    ///   - take: Takes the outcome of a question.
    static func ask(
        _ count: Int, _ question: (Int) -> ControlQuestion?,
        _ take: (Int, Result<String, Failure>) -> Void
    ) {
        var waiting: [(index: Int, question: ControlQuestion)] = []
        var room = [UInt8](repeating: 0, count: 65_536)
        var next = 0
        while next < count || !waiting.isEmpty {
            while next < count, waiting.count < limit {
                if let question = question(next) { waiting.append((next, question)) }
                next += 1
            }
            for place in waiting.indices.reversed() {
                waiting[place].question.proceed(&room)
                guard let outcome = waiting[place].question.outcome else { continue }
                take(waiting.remove(at: place).index, outcome)
            }
            if next == count || waiting.count == limit { awaitAny(waiting.map(\.question)) }
        }
    }

    /// Waits until one of them may proceed.
    private static func awaitAny(_ questions: [ControlQuestion]) {
        guard let deadline = questions.map(\.deadline).min() else { return }
        let now = Clock.now().nanoseconds
        var milliseconds = (deadline - min(deadline, now)) / millisecond + 1
        if questions.contains(where: { $0.connection == nil }) {
            milliseconds = min(milliseconds, UInt64(retryInterval))
        }
        var waited = questions.compactMap(\.connection).map {
            pollfd(fd: $0.descriptor, events: Int16(POLLIN), revents: 0)
        }
        _ = SystemCall.poll(&waited, Int32(milliseconds))
    }

    /// Does what can be done without waiting.
    private mutating func proceed(_ room: inout [UInt8]) {
        guard outcome == nil else { return }
        if connection == nil {
            connection = UnixConnection(path)
            let code = errno
            guard let connection else {
                if code != EAGAIN { return end(.failure(.unreachable(code))) }
                return endIfLate()
            }
            let line = request
            guard SystemCall.send(connection.descriptor, line.rawSpan) == line.count else {
                return end(.failure(.ended))
            }
        }
        while let connection {
            let count = SystemCall.receive(connection.descriptor, &room, 0)
            if count < 0, errno == EINTR { continue }
            if count < 0, errno == EAGAIN { return endIfLate() }
            guard count > 0 else { return end(.failure(.ended)) }
            received += room[..<count]
            if received.last == 0x0a {
                return end(.success(String(decoding: received.dropLast(), as: UTF8.self)))
            }
            guard received.count < Self.responseLimit else { return end(.failure(.ended)) }
        }
    }

    private mutating func endIfLate() {
        if Clock.now().nanoseconds >= deadline { end(.failure(.silent)) }
    }

    private mutating func end(_ outcome: Result<String, Failure>) {
        self.outcome = outcome
        connection = nil
        received = []
    }
}
