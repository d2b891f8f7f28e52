import BroadsideLedgers
internal import BroadsidePrimitives
public import BroadsideSupport
internal import Glibc

/// Client of `broadside control`: sends one line to a running process and returns its response.
public enum ControlClient {
    /// Sends a request to a process that was started with `--control PATH`.
    ///
    /// - Parameters:
    ///   - path: Path of the socket.
    ///   - request: Request, one line.
    /// - Returns: The response, one line of JSON.
    /// - Throws: Exit code 1 if no process listens on the socket, or no response comes.
    public static func ask(path: String, request: String) throws(BroadsideError) -> String {
        let seconds = UnixLineClient.timeoutSeconds + WaitTimeout.seconds(ofRequest: request)
        let question = UnixLineClient(
            path, request: request, seconds: seconds, responseLimit: UnixLineClient.listLimit)
        do throws(UnixLineClient.Failure) {
            return try outcome(question).get()
        } catch {
            guard case .unreachable(let code) = error else {
                throw noResponse(
                    error, path, "the process that listens on \(path)", seconds: seconds)
            }
            throw BroadsideError(
                "nothing listens on \(path) (\(describe(errno: code))): name the socket that a "
                    + "running send or simulate opened with --control", exitCode: 1)
        }
    }

    /// Sends a request to the run that writes a ledger.
    ///
    /// - Parameters:
    ///   - path: Directory of the ledger.
    ///   - request: Request, one line.
    /// - Returns: The response, one line of JSON.
    /// - Throws: Exit code 1 if no run writes the ledger, or no response comes; 2 if the directory
    ///   is not a ledger.
    public static func ask(ledger path: String, request: String) throws(BroadsideError) -> String {
        let directory = try LedgerDirectory.openToRead(path)
        let socket = try directory.controlPath(limit: unixPathLimit)
        let question = UnixLineClient(socket, request: request, keeping: directory)
        do throws(UnixLineClient.Failure) {
            return try outcome(question).get()
        } catch {
            guard case .unreachable(let code) = error else {
                throw noResponse(error, path, "the run that writes \(path)")
            }
            _ = try directory.readManifest()
            let isGone = code == ENOENT || code == ECONNREFUSED
            guard directory.isInUse || !isGone else {
                throw BroadsideError(
                    "no run is writing \(path): broadside ledger stats --ledger \(shellWord(path)) "
                        + "shows how the last one ended", exitCode: 1)
            }
            throw BroadsideError(
                "the run that writes \(path) cannot be reached (\(describe(errno: code))): the "
                    + "run may be starting or ending, or it belongs to another user: try again, "
                    + "or run this command as that user",
                exitCode: 1)
        }
    }

    /// Sends a request to the runs of several ledgers concurrently.
    ///
    /// - Parameters:
    ///   - paths: Directories of the ledgers.
    ///   - request: Request, one line.
    ///   - read: Parses a response, one line of JSON.
    /// - Returns: The parsed response per ledger; nil if no run responds.
    static func ask<Value>(
        ledgers paths: [String], request: String, _ read: (String) -> Value?
    ) -> [Value?] {
        var values = [Value?](repeating: nil, count: paths.count)
        UnixLineClient.ask(paths.count) { index in
            guard let directory = try? LedgerDirectory.openToRead(paths[index]),
                let socket = try? directory.controlPath(limit: unixPathLimit)
            else { return nil }
            return UnixLineClient(socket, request: request, keeping: directory)
        } _: { index, outcome in
            values[index] = (try? outcome.get()).flatMap(read)
        }
        return values
    }

    private static func outcome(
        _ question: UnixLineClient
    ) -> Result<String, UnixLineClient.Failure> {
        var outcome = Result<String, UnixLineClient.Failure>.failure(.ended)
        UnixLineClient.ask(1) { _ in
            question
        } _: {
            outcome = $1
        }
        return outcome
    }

    private static func noResponse(
        _ failure: UnixLineClient.Failure, _ path: String, _ process: String,
        seconds: Int = UnixLineClient.timeoutSeconds
    ) -> BroadsideError {
        let message =
            switch failure {
            case .silent:
                "\(process) does not respond within \(seconds) s: if it is suspended, "
                    + "continue it with kill -CONT PID, where PID is its process ID"
            case .tooLong:
                "the response of \(process) is too long: ask for fewer requests, such as received "
                    + "limit=100"
            case .ended, .unreachable:
                "\(path) does not respond: the process may just have ended"
            }
        return BroadsideError(message, exitCode: 1)
    }

    /// Error message of a response; nil if the request succeeded.
    public static func error(in response: String) -> String? {
        let fields = Self.fields(of: response)
        if let message = fields.first(where: { $0.name == "error" }) { return message.value }
        let isRefused = fields.contains { $0.name == "ok" && $0.value == "no" }
        return isRefused ? "the request was refused" : nil
    }

    /// Formats a response as human-readable text, one line per field.
    public static func text(of response: String) -> String {
        let fields = Self.fields(of: response).filter { $0.name != "ok" }
        guard !fields.isEmpty else { return ForeignText.escaped(response) + "\n" }
        let width = min(30, fields.map(\.name.count).max() ?? 0) + 2
        var text = ""
        for field in fields {
            let gap = String(repeating: " ", count: max(1, width - field.name.count))
            text += ForeignText.escaped("\(field.name)\(gap)\(field.value)") + "\n"
        }
        return text
    }

    /// What an operator has to know about a request that succeeded, as a line of text; empty if there
    /// is nothing.
    public static func note(on request: String) -> String {
        guard (try? ControlRequest(request)) == .stop else { return "" }
        return
            "note        the run ends with exit code 3: systemd, Kubernetes, Airflow or Spark then "
            + "start it again, so stop its unit, job or task there, or use pause\n"
    }

    /// Returns all members of the response, in order. The name of a nested member begins with the
    /// name of its object.
    private static func fields(of response: String) -> [(name: String, value: String)] {
        let bytes = Array(response.utf8)
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
            case .number:
                fields.append((name(path, key), UInt64(raw).map { grouped($0) } ?? raw))
            case .true_: fields.append((name(path, key), "yes"))
            case .false_: fields.append((name(path, key), "no"))
            case .null: fields.append((name(path, key), "-"))
            }
        }
        return fields
    }

    private static func name(_ path: [String], _ key: String) -> String {
        // Objects of an array have the array's name.
        var words: [String] = []
        for word in path + [key] where word != words.last { words.append(word) }
        return words.joined(separator: " ")
    }

    /// Decodes the escapes that Broadside's own responses contain.
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
