import APNs
internal import Glibc
import Ledgers
public import Support

/// A connection to somebody's control socket.
final class UnixConnection {
    let descriptor: Int32

    /// Seconds that a connection, a request or a response may take.
    static let patience = 10

    /// nil where nobody listens; errno says why.
    init?(_ path: String) {
        guard let address = unixAddress(path) else {
            errno = ENAMETOOLONG
            return nil
        }
        descriptor = socket(
            AF_UNIX, Int32(SOCK_STREAM.rawValue) | Int32(SOCK_CLOEXEC.rawValue), 0)
        guard descriptor >= 0 else { return nil }
        let descriptor = descriptor
        // Before it connects: the queue of a process that is stopped may be full.
        let limit = timeval(tv_sec: Self.patience, tv_usec: 0)
        for option in [SO_RCVTIMEO, SO_SNDTIMEO] {
            SystemCall.setOption(descriptor, option, limit)
        }
        guard SystemCall.connect(descriptor, address) == 0 else {
            return nil
        }
    }

    deinit {
        guard descriptor >= 0 else { return }
        let code = errno
        close(descriptor)
        errno = code
    }
}

/// `broadside control`: sends one line to a running process, and returns its response.
public enum ControlClient {
    /// The longest response that is read.
    private static let answerLimit = 1 << 20

    /// Asks a process that was started with `--control PATH`.
    ///
    /// - Returns: The response, one line of JSON.
    /// - Throws: Exit code 1 if nothing listens there.
    public static func ask(path: String, request: String) throws(BroadsideError) -> String {
        guard let connection = UnixConnection(path) else {
            let cause = describe(errno: errno)
            throw BroadsideError(
                "nothing listens on \(path) (\(cause)): name the socket that a running send or "
                    + "simulate was given by --control", exitCode: 1)
        }
        return try ask(connection, request, shownAs: path)
    }

    /// Asks the run that writes a ledger.
    ///
    /// - Returns: The response, one line of JSON.
    /// - Throws: Exit code 1 if no run does, 2 if the directory is not a ledger.
    public static func ask(ledger path: String, request: String) throws(BroadsideError) -> String {
        let directory = try LedgerDirectory.openToRead(path)
        let socket = try directory.controlPath(limit: unixPathLimit)
        guard let connection = UnixConnection(socket) else {
            let code = errno
            _ = try directory.readManifest()
            let isGone = code == ENOENT || code == ECONNREFUSED
            guard directory.isInUse || !isGone else {
                throw BroadsideError(
                    "no run is writing \(path): broadside ledger stats --ledger \(shellWord(path)) "
                        + "shows how the last one ended", exitCode: 1)
            }
            throw BroadsideError(
                "the run that writes \(path) cannot be reached (\(describe(errno: code))): it may "
                    + "just begin or end, or another user's; try again, as its owner",
                exitCode: 1)
        }
        return try ask(connection, request, shownAs: path)
    }

    private static func ask(
        _ connection: UnixConnection, _ request: String, shownAs path: String
    ) throws(BroadsideError) -> String {
        let line = Array(request.utf8) + [0x0a]
        guard SystemCall.send(connection.descriptor, line.rawSpan) == line.count else {
            throw silent(path)
        }
        var answer: [UInt8] = []
        var room = [UInt8](repeating: 0, count: 65_536)
        let deadline = Clock.now().nanoseconds + UInt64(UnixConnection.patience) * second
        while answer.last != 0x0a, answer.count < answerLimit, Clock.now().nanoseconds < deadline {
            let count = SystemCall.receive(connection.descriptor, &room, 0)
            if count < 0, errno == EINTR { continue }
            guard count > 0 else { break }
            answer += room[..<count]
        }
        guard answer.last == 0x0a else { throw silent(path) }
        answer.removeLast()
        return String(decoding: answer, as: UTF8.self)
    }

    private static func silent(_ path: String) -> BroadsideError {
        BroadsideError("\(path) sends no response: the process may just have ended", exitCode: 1)
    }

    /// What is wrong with the request, where the answer says so; nil for a good answer.
    public static func error(in answer: String) -> String? {
        let fields = Self.fields(of: answer)
        if let message = fields.first(where: { $0.name == "error" }) { return message.value }
        let isRefused = fields.contains { $0.name == "ok" && $0.value == "no" }
        return isRefused ? "the request was refused" : nil
    }

    /// An answer for people: a line a field.
    public static func text(of answer: String) -> String {
        let fields = Self.fields(of: answer).filter { $0.name != "ok" }
        guard !fields.isEmpty else { return ForeignText.escaped(answer) + "\n" }
        let width = min(30, fields.map(\.name.count).max() ?? 0) + 2
        var text = ""
        for field in fields {
            let gap = String(repeating: " ", count: max(1, width - field.name.count))
            text += ForeignText.escaped("\(field.name)\(gap)\(field.value)") + "\n"
        }
        return text
    }

    /// The members of the answer's objects in their order, names of inner ones behind the outer's.
    private static func fields(of answer: String) -> [(name: String, value: String)] {
        let bytes = Array(answer.utf8)
        var tokenizer = JSONTokenizer()
        var fields: [(name: String, value: String)] = []
        var path: [String] = []
        var key = ""
        while let token = (try? tokenizer.next(in: bytes.rawSpan)) ?? nil {
            let raw = String(decoding: bytes[token.range], as: UTF8.self)
            switch token.kind {
            case .objectStart, .arrayStart:
                if tokenizer.depth > 1 { path.append(key) }
            case .objectEnd, .arrayEnd:
                if !path.isEmpty { key = path.removeLast() }
            case .key:
                key = raw.split(separator: "_").joined(separator: " ")
            case .string:
                fields.append((name(path, key), unescaped(raw)))
            case .number: fields.append((name(path, key), raw))
            case .true_: fields.append((name(path, key), "yes"))
            case .false_: fields.append((name(path, key), "no"))
            case .null: fields.append((name(path, key), "-"))
            }
        }
        return fields
    }

    private static func name(_ path: [String], _ key: String) -> String {
        // The objects of an array stand under the array's name.
        var words: [String] = []
        for word in path + [key] where word != words.last { words.append(word) }
        return words.joined(separator: " ")
    }

    /// The escapes that our own answers hold.
    private static func unescaped(_ raw: String) -> String {
        guard raw.contains("\\") else { return raw }
        var text = String.UnicodeScalarView()
        var isEscaped = false
        for scalar in raw.unicodeScalars {
            if isEscaped {
                text.append(scalar == "n" ? "\n" : scalar == "t" ? "\t" : scalar)
                isEscaped = false
            } else if scalar == "\\" {
                isEscaped = true
            } else {
                text.append(scalar)
            }
        }
        return String(text)
    }
}
