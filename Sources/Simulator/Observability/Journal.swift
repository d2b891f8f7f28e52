internal import BroadsideAPNs
internal import BroadsideSupport
internal import Glibc

/// The output file with one line per request.
///
///     t_us,connection,stream,apns_id,token,status,reason
///
/// `t_us` is the time at which the request was complete, in microseconds since the epoch. If the
/// system's clock is set while the simulator runs, `t_us` is not affected.
///
/// Each thread has its own buffer. The thread buffers a line as soon as a request is complete,
/// whatever its response is. The thread appends only whole lines to the file.
struct JournalFile: Sendable {
    static let header: StaticString = "t_us,connection,stream,apns_id,token,status,reason\n"

    let descriptor: Int32

    /// Creates or truncates the file and writes the header line.
    init(path: String) throws(SimulatorError) {
        descriptor = PrivateFile.openToAppend(path)
        guard descriptor >= 0 else {
            throw SimulatorError(
                "--journal \(path): \(describe(errno: errno)): name a file that can be written",
                exitCode: 2)
        }
        if let code = writeWhole(Self.header.rawBytes, to: descriptor) {
            _ = close(descriptor)
            throw SimulatorError("--journal \(path): \(describe(errno: code))", exitCode: 5)
        }
    }

    /// Closes the file after all threads have ended.
    func finish() {
        _ = close(descriptor)
    }
}

/// The journal lines of one thread.
struct JournalWriter: ~Copyable {
    /// Number of buffered bytes that triggers a write. Lines are also written after one second.
    private static let flushCount = 1 << 16
    private static let intervalNanoseconds: UInt64 = 500_000_000

    private let descriptor: Int32
    private var buffer = ByteBuffer(capacity: (1 << 16) + 4096)
    private var oldest: UInt64 = 0
    /// True if a write failed and the journal is incomplete.
    private(set) var hasFailed = false

    init(_ file: JournalFile) {
        descriptor = file.descriptor
    }

    /// Appends a line.
    ///
    /// - Parameters:
    ///   - token: Digits of the device token; empty if the token is not well-formed.
    ///   - now: Monotonic time, nanoseconds.
    mutating func append(
        microseconds: UInt64, connection: UInt64, stream: UInt32,
        identifier: NotificationIDText, token: RawSpan, response: Response, now: UInt64
    ) {
        buffer.reserve(512)
        if buffer.count == 0 { oldest = now }
        number(microseconds)
        number(connection)
        number(UInt64(stream))
        buffer.append(identifier)
        buffer.append(UInt8(ascii: ","))
        buffer.append(token)
        buffer.append(UInt8(ascii: ","))
        number(UInt64(response.status))
        if let reason = response.reason { buffer.append(reason.staticText) }
        buffer.append(UInt8(ascii: "\n"))
        assert(now >= oldest, "a line before the oldest one")
        if buffer.count >= Self.flushCount { flush() }
    }

    private mutating func number(_ value: UInt64) {
        buffer.append(decimal: value)
        buffer.append(UInt8(ascii: ","))
    }

    /// Time by which the buffered lines must be written; nil if there are none.
    var flushDue: UInt64? { buffer.count == 0 ? nil : oldest + Self.intervalNanoseconds }

    /// Writes the buffered lines.
    mutating func flush() {
        guard buffer.count > 0 else { return }
        if (try? writeAll(buffer.bytes, to: descriptor, name: "--journal")) == nil {
            hasFailed = true
        }
        buffer.removeAll()
    }
}
