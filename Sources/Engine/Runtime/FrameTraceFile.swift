import BroadsideHTTP2
package import BroadsideSupport
internal import Glibc
internal import Synchronization

/// File of `--trace-frames`, of bounded size: one line of JSON per frame, for all connections.
///
///     reactors ──▶ lines, at most `waitingLimit` bytes ──▶ the writer's thread ──▶ file
///
/// If the disk is slower, reactors wait for it. If the disk hangs, the trace ends and the run
/// continues. A run that stops hardly waits.
package final class FrameTraceFile: Sendable {
    private struct State {
        /// The lines that wait to be written.
        var lines: [UInt8] = []
        /// Number of bytes added so far.
        var byteCount = 0
        var hasEnded = false
        /// Error that made the file incomplete.
        var failure: String?

        mutating func fail(_ reason: String) {
            hasEnded = true
            failure = failure ?? reason
        }
    }

    /// The state shared by reactors and the writer.
    private final class Shared: Sendable {
        let path: String
        let descriptor: Int32
        let state = Mutex(State())

        init(_ path: String, _ descriptor: Int32) {
            self.path = path
            self.descriptor = descriptor
        }

        deinit { close(descriptor) }

        func writeWaiting() {
            let lines = state.withLock { state in
                defer { state.lines = [] }
                return state.lines
            }
            do throws(BroadsideError) {
                try writeAll(lines, to: descriptor, name: path)
            } catch {
                state.withLock { $0.fail(error.message) }
            }
        }
    }

    private let shared: Shared
    private let writer: BackgroundWorker<Void, Void>
    private let connections = Atomic<Int>(0)
    private let isStopping = Atomic<Bool>(false)

    /// Limit on written bytes. When it is reached, a last line in the file reports this.
    static let byteLimit = 256 << 20
    /// Limit on bytes that wait to be written, and limit on bytes that are being written.
    private static let waitingLimit = 4 << 20
    /// Maximum time that a reactor waits for the writer, and the same in a run that stops.
    private static let waitLimitMilliseconds = 5_000
    private static let stoppingWaitLimitMilliseconds = 100

    /// - Parameter path: A path whose file may be overwritten; the caller has checked it.
    package init(_ path: String) throws(BroadsideError) {
        let descriptor = SystemCall.open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0o600)
        guard descriptor >= 0 else {
            throw .file(option: "trace-frames", path, errno: errno, "name a place to write to")
        }
        // A file that exists keeps its mode when it is opened.
        makePrivate(descriptor, path)
        let shared = Shared(path, descriptor)
        self.shared = shared
        writer = BackgroundWorker { shared.writeWaiting() }
    }

    /// Checks that a trace can be written to a path. Writes nothing.
    package static func check(_ path: String) throws(BroadsideError) {
        // Reactors wait for the file, and a pipe without a reader accepts no bytes.
        guard !isSpecialFile(path) else {
            throw .usage("trace-frames", "\(path) is not a regular file: name a file to write to")
        }
        // A file that exists is overwritten in place.
        if SystemCall.status(path) == nil { try checkFolder(of: path, option: "trace-frames") }
    }

    /// Returns the number of a new connection, in order of creation.
    func nextConnection() -> Int { connections.add(1, ordering: .relaxed).newValue }

    /// Appends whole lines. Lines that can't be written are dropped, because a trace never ends a
    /// run.
    func append(_ lines: String) {
        guard !lines.isEmpty else { return }
        let bytes = Array(lines.utf8)
        var waited = 0
        while true {
            let outcome = shared.state.withLock { Self.put(bytes, into: &$0) }
            if outcome == .ended { return }
            if outcome == .done { break }
            let limit =
                isStopping.load(ordering: .relaxed)
                ? Self.stoppingWaitLimitMilliseconds : Self.waitLimitMilliseconds
            guard waited < limit else {
                shared.state.withLock { $0.fail("\(shared.path): its disk accepts no data") }
                return
            }
            usleep(1000)
            waited += 1
        }
        do throws(BroadsideError) {
            try writer.put(())
        } catch {
            shared.state.withLock { $0.fail(error.message) }
        }
    }

    private enum Outcome { case done, full, ended }

    private static func put(_ bytes: [UInt8], into state: inout State) -> Outcome {
        guard !state.hasEnded else { return .ended }
        guard state.lines.isEmpty || state.lines.count + bytes.count <= waitingLimit else {
            return .full
        }
        if state.byteCount + bytes.count > byteLimit {
            state.hasEnded = true
            state.lines += Array(
                "{\"note\":\"the trace ends here: it has reached its limit\"}\n".utf8)
        } else {
            state.byteCount += bytes.count
            state.lines += bytes
        }
        assert(state.byteCount <= byteLimit, "a trace has a limit")
        return .done
    }

    /// Sets whether the run stops. If so, the trace ends soon after its disk accepts no more data.
    package func setStopping(_ isStopping: Bool) {
        self.isStopping.store(isStopping, ordering: .relaxed)
    }

    /// Whether lines are still being written. Called by one thread.
    package var isWriting: Bool {
        _ = writer.take()
        return !writer.isIdle
    }

    /// Reason why the file is incomplete; nil if it is complete. Call after the last append.
    package var failure: String? {
        if isWriting { return "\(shared.path) is still being written" }
        return shared.state.withLock { $0.failure }
    }
}

/// Formats a frame as a line of the trace, without secrets.
struct FrameTraceLine {
    /// Limit on characters of a reason or a server's text.
    private static let textLimit = 300

    static func text(
        _ frame: TracedFrame, connection: Int, isSent: Bool, milliseconds: UInt64
    ) -> String {
        var line = JSONLine()
        line.add("time", timeText(milliseconds))
        line.add("connection", connection)
        line.add("direction", isSent ? "sent" : "received")
        line.add("type", name(frame.header.type))
        line.add("stream", UInt64(frame.header.streamID))
        line.addRaw(
            "flags", "[\(flags(frame.header).map(JSONLine.quoted).joined(separator: ","))]")
        line.add("length", frame.header.length)
        if let fields = frame.fields {
            let token = requestToken(in: fields)
            let pairs = fields.map { name, value in
                let text = String(decoding: name, as: UTF8.self)
                let value = JSONLine.quoted(shown(text, value, token))
                return "[\(JSONLine.quoted(text)),\(value)]"
            }
            line.addRaw("headers", "[\(pairs.joined(separator: ","))]")
        }
        addDetail(frame, isSent: isSent, &line)
        return line.object + "\n"
    }

    /// The device token of a request, which is at the end of its path; nil if it has none.
    private static func requestToken(
        in fields: [(name: [UInt8], value: [UInt8])]
    ) -> ShortenedToken? {
        guard let path = fields.first(where: { $0.name.elementsEqual(":path".utf8) })?.value,
            let slash = path.lastIndex(of: UInt8(ascii: "/"))
        else { return nil }
        let token = path[(slash + 1)...]
        let digits = "0123456789abcdef".utf8
        return token.allSatisfy(digits.contains) ? ShortenedToken(Array(token)) : nil
    }

    /// Returns a header value with its secret removed, and with the row's token shortened: a
    /// template may have put the token into any header.
    private static func shown(
        _ name: String, _ value: [UInt8], _ token: ShortenedToken?
    ) -> String {
        let text = String(decoding: value, as: UTF8.self)
        switch name {
        case "authorization":
            return "bearer (\(value.count) bytes)"
        case ":path":
            guard let (folder, token) = text.parts(atLast: "/") else { return text }
            return "\(folder)/\(token.count > 8 ? "\(token.prefix(8))..." : token)"
        default:
            let bytes = token?.shortened(in: value) ?? value
            return printable(String(decoding: bytes, as: UTF8.self), limit: textLimit)
        }
    }

    private static func addDetail(_ frame: TracedFrame, isSent: Bool, _ line: inout JSONLine) {
        let payload = frame.payload
        func number(_ offset: Int, _ count: Int) -> UInt64 {
            payload.dropFirst(offset).prefix(count).reduce(0) { $0 << 8 | UInt64($1) }
        }
        switch frame.header.type {
        case .data where !isSent:
            // The body of a response is a reason. Sent bodies may be personal and are not shown.
            line.add("body", printable(String(decoding: payload, as: UTF8.self), limit: textLimit))
        case .resetStream where payload.count == 4:
            line.add("error", errorName(number(0, 4)))
        case .windowUpdate where payload.count == 4:
            line.add("increment", number(0, 4) & 0x7fff_ffff)
        case .goAway where payload.count >= 8:
            line.add("last_stream", number(0, 4) & 0x7fff_ffff)
            line.add("error", errorName(number(4, 4)))
            let debugText = String(decoding: payload.dropFirst(8), as: UTF8.self)
            line.add("debug", printable(debugText, limit: textLimit))
        case .settings:
            let settings = stride(from: 0, to: payload.count - payload.count % 6, by: 6).map {
                "[\(JSONLine.quoted(settingName(number($0, 2)))),\(number($0 + 2, 4))]"
            }
            line.addRaw("settings", "[\(settings.joined(separator: ","))]")
        default:
            break
        }
    }

    private static func errorName(_ code: UInt64) -> String {
        ErrorCode(rawValue: UInt32(code)).name?.description ?? "error \(code)"
    }

    private static func settingName(_ identifier: UInt64) -> String {
        switch identifier {
        case 1: "HEADER_TABLE_SIZE"
        case 2: "ENABLE_PUSH"
        case 3: "MAX_CONCURRENT_STREAMS"
        case 4: "INITIAL_WINDOW_SIZE"
        case 5: "MAX_FRAME_SIZE"
        case 6: "MAX_HEADER_LIST_SIZE"
        default: "setting \(identifier)"
        }
    }

    private static func name(_ type: FrameType) -> String {
        let names = [
            "DATA", "HEADERS", "PRIORITY", "RST_STREAM", "SETTINGS", "PUSH_PROMISE", "PING",
            "GOAWAY", "WINDOW_UPDATE", "CONTINUATION",
        ]
        let number = Int(type.rawValue)
        return number < names.count ? names[number] : "type \(number)"
    }

    private static func flags(_ header: FrameHeader) -> [String] {
        var names: [String] = []
        switch header.type {
        case .settings, .ping:
            if header.flags.contains(.acknowledgement) { names.append("ACK") }
        case .data, .headers, .continuation:
            if header.type != .continuation, header.flags.contains(.endStream) {
                names.append("END_STREAM")
            }
            if header.type != .data, header.flags.contains(.endHeaders) {
                names.append("END_HEADERS")
            }
            if header.type != .continuation, header.flags.contains(.padded) {
                names.append("PADDED")
            }
            if header.type == .headers, header.flags.contains(.priority) {
                names.append("PRIORITY")
            }
        default:
            break
        }
        return names
    }
}
