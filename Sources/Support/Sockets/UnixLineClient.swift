internal import Glibc

/// A line to a process with a `UnixLineServer`, and the wait for its response. One thread asks many
/// at the same time, so that processes that are suspended cost as much time as one of them.
package struct UnixLineClient {
    /// Why there is no response.
    package enum Failure: Error, Equatable {
        /// Nothing listens; the errno says why.
        case unreachable(Int32)
        /// It took no connection, or sent no response, in time.
        case silent
        /// It ended the connection, or sent more than a response may have.
        case ended
    }

    /// The response, a line of JSON, or why there is none; nil while it is awaited.
    private var outcome: Result<String, Failure>?

    private let path: String
    private let request: [UInt8]
    /// Keeps what the path leads through.
    private let kept: AnyObject?
    private let deadline: UInt64
    private var connection: UnixConnection?
    private var received: [UInt8] = []

    /// Seconds that a process has to take the connection and to respond.
    package static let patience = 10
    /// The longest response that is read, in bytes.
    static let responseLimit = 1 << 20
    /// Questions that wait for a response at the same time; each needs two descriptors.
    static let limit = 256
    /// Milliseconds until a process whose queue was full is tried again.
    private static let retryInterval = 50

    /// - Parameters:
    ///   - path: The socket.
    ///   - kept: What has to stay for the path to lead to it.
    package init(_ path: String, request: String, keeping kept: AnyObject? = nil) {
        self.path = path
        self.request = Array(request.utf8) + [0x0a]
        self.kept = kept
        deadline = Clock.now().nanoseconds + UInt64(Self.patience) * second
    }

    /// Asks several processes.
    ///
    /// - Parameters:
    ///   - count: How many.
    ///   - question: Makes the question with a number; nil: there is nobody to ask.
    ///   - take: Takes the outcome of a question.
    package static func ask(
        _ count: Int, _ question: (Int) -> UnixLineClient?,
        _ take: (Int, Result<String, Failure>) -> Void
    ) {
        var waiting: [(index: Int, question: UnixLineClient)] = []
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
    private static func awaitAny(_ questions: [UnixLineClient]) {
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
