internal import BroadsideAPNs
internal import BroadsideSupport
internal import Glibc
internal import Synchronization

/// The output file with one line of JSON per response, from which `Replay` repeats the responses.
///
///     {"token":"00fc…","status":410,"reason":"Unregistered","timestamp":1700000000000}
///
/// The lines are in the order in which requests were complete, over all threads. So the Nth line of
/// a token is the response to its Nth request. If a request has no well-formed device token, the
/// token in its line is null. For a notification of the legacy gateway, `protocol` is `binary`, and
/// `status` is the status of the error packet, or 0 if the notification got none:
///
///     {"token":"00fc…","protocol":"binary","status":8,"reason":"BadDeviceToken"}
final class ResponseFile: Sendable {
    /// Number of buffered bytes that triggers a write. Lines are also written after a short time.
    private static let flushCount = 1 << 16
    private static let intervalNanoseconds: UInt64 = 200_000_000

    private struct State {
        var lines: [UInt8] = []
        var oldest: UInt64 = 0
        var hasFailed = false
    }

    private let descriptor: Int32
    private let state = Mutex(State())

    /// Creates or truncates the file.
    init(path: String) throws(SimulatorError) {
        descriptor = PrivateFile.openToAppend(path)
        guard descriptor >= 0 else {
            throw SimulatorError(
                "--record \(path): \(describe(errno: errno)): name a file that can be written",
                exitCode: 2)
        }
    }

    /// Appends a response.
    ///
    /// - Parameters:
    ///   - token: Digits of the device token; empty if the token is not well-formed.
    ///   - isBinary: Whether the legacy gateway sent the response.
    ///   - now: Monotonic time, nanoseconds.
    func append(_ response: Response, token: RawSpan, isBinary: Bool = false, now: UInt64) {
        var line = JSONLine()
        line.add(
            "token",
            token.byteCount == 0
                ? nil : String(decoding: Array(token).map { $0 | 0x20 }, as: UTF8.self))
        if isBinary { line.add("protocol", "binary") }
        line.add("status", UInt64(response.status))
        if let reason = response.reason { line.add("reason", reason.text) }
        if response.status == 410 { line.add("timestamp", response.timestampMilliseconds) }
        if let seconds = response.retryAfterSeconds { line.add("retry_after", UInt64(seconds)) }
        let text = line.object
        state.withLock { state in
            if state.lines.isEmpty { state.oldest = now }
            state.lines += text.utf8
            state.lines.append(0x0a)
            if state.lines.count >= Self.flushCount { write(&state) }
        }
    }

    /// Writes the buffered lines if they are due; otherwise returns their due time, nanoseconds.
    func flushDue(_ now: UInt64) -> UInt64? {
        state.withLock { state in
            guard !state.lines.isEmpty else { return nil }
            let due = state.oldest + Self.intervalNanoseconds
            guard due <= now else { return due }
            write(&state)
            return nil
        }
    }

    /// Writes the buffered lines and closes the file. Called after all threads have ended. Returns
    /// true if every line was written.
    func finish() -> Bool {
        state.withLock { state in
            write(&state)
            _ = close(descriptor)
            return !state.hasFailed
        }
    }

    private func write(_ state: inout State) {
        guard !state.lines.isEmpty else { return }
        if (try? writeAll(state.lines, to: descriptor, name: "--record")) == nil {
            state.hasFailed = true
        }
        state.lines.removeAll(keepingCapacity: true)
        assert(state.lines.isEmpty, "a line is written once")
    }
}
