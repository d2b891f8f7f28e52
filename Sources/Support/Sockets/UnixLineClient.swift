internal import Glibc

/// A request line to a process with a `UnixLineServer`, and its response. One thread queries many
/// processes simultaneously. So several suspended processes delay the thread no longer than a
/// single one would.
package struct UnixLineClient {
    /// The reason for a missing response.
    package enum Failure: Error, Equatable {
        /// No process listens; the associated value is the error number.
        case unreachable(Int32)
        /// The process accepted no connection or sent no response in time.
        case silent
        /// The process closed the connection.
        case ended
        /// The response is longer than the request's limit.
        case tooLong
    }

    /// The response (a line of JSON) or the failure; nil while the request is pending.
    private var outcome: Result<String, Failure>?

    private let path: String
    private let request: [UInt8]
    /// An object that must live as long as the path is used.
    private let kept: AnyObject?
    private let deadline: UInt64
    private let responseLimit: Int
    private var connection: UnixConnection?
    private var received: [UInt8] = []

    /// Seconds within which a process must accept the connection and respond, unless the request
    /// sets another time.
    package static let timeoutSeconds = 10
    /// Maximum byte count of a response, unless the request sets another limit.
    package static let responseLimit = 1 << 20
    /// Maximum byte count of a response that lists requests. A simulator keeps at most 64 MiB of
    /// requests, and hexadecimal digits double the size of a payload.
    package static let listLimit = 256 << 20
    /// Maximum number of simultaneous requests; each uses two descriptors.
    static let limit = 256
    /// Milliseconds until a process with a full queue is retried.
    private static let retryInterval = 50

    /// Creates a request.
    ///
    /// - Parameters:
    ///   - path: The path of the socket.
    ///   - seconds: Time within which the process must accept the connection and respond.
    ///   - responseLimit: Maximum byte count of the response.
    ///   - kept: An object that must live as long as the path is used.
    package init(
        _ path: String, request: String, seconds: Int = UnixLineClient.timeoutSeconds,
        responseLimit: Int = UnixLineClient.responseLimit, keeping kept: AnyObject? = nil
    ) {
        self.path = path
        self.request = Array(request.utf8) + [0x0a]
        self.kept = kept
        self.responseLimit = responseLimit
        deadline = Clock.now().nanoseconds + UInt64(seconds) * second
    }

    /// Queries several processes.
    ///
    /// - Parameters:
    ///   - count: The number of processes.
    ///   - question: Creates the request with the given number, or returns nil to skip it.
    ///   - take: Receives the outcome of a request.
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
            assert(waiting.count <= limit)
            if next == count || waiting.count == limit { awaitAny(waiting.map(\.question)) }
        }
    }

    /// Waits until at least one request can make progress.
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

    /// Makes all progress that is possible without waiting.
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
            guard received.count < responseLimit else { return end(.failure(.tooLong)) }
        }
    }

    private mutating func endIfLate() {
        if Clock.now().nanoseconds >= deadline { end(.failure(.silent)) }
    }

    private mutating func end(_ outcome: Result<String, Failure>) {
        assert(self.outcome == nil, "a request with two outcomes")
        self.outcome = outcome
        connection = nil
        received = []
    }
}
