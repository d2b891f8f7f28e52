internal import BroadsideAPNs
internal import BroadsideSupport
internal import Glibc

/// The file that gets a line for each request.
///
///     t_us,connection,stream,apns_id,token,status,reason
///
/// `t_us` is when the request was complete, microseconds since the epoch on a clock that is set
/// once at the start and never steps. A line stands as soon as the request is complete, whatever
/// becomes of its answer. Each thread collects lines and appends whole ones.
struct JournalFile: Sendable {
    static let header: StaticString = "t_us,connection,stream,apns_id,token,status,reason\n"

    let descriptor: Int32

    /// Creates or empties the file and writes the header line.
    init(path: String) throws(SimulatorError) {
        descriptor = PrivateFile.openToAppend(path)
        guard descriptor >= 0 else {
            throw SimulatorError(
                "--journal \(path): \(describe(errno: errno)): name a file that can be written",
                exitCode: 2)
        }
        _ = SystemCall.write(descriptor, Self.header.rawBytes)
    }

    /// After all threads have ended.
    func finish() {
        _ = close(descriptor)
    }
}

/// One thread's lines of the journal.
struct JournalWriter: ~Copyable {
    /// Lines are written when so many bytes wait, or a second has passed.
    private static let flushCount = 1 << 16
    private static let intervalNanoseconds: UInt64 = 500_000_000

    private let descriptor: Int32
    private var buffer = ByteBuffer(capacity: (1 << 16) + 4096)
    private var oldest: UInt64 = 0
    /// A write failed: the journal is not whole.
    private(set) var hasFailed = false

    init(_ file: JournalFile) {
        descriptor = file.descriptor
    }

    /// Appends a line.
    ///
    /// - Parameters:
    ///   - token: digits of a well-formed token, else empty.
    ///   - now: nanoseconds, monotonic.
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
        if buffer.count >= Self.flushCount { flush() }
    }

    private mutating func number(_ value: UInt64) {
        buffer.append(decimal: value)
        buffer.append(UInt8(ascii: ","))
    }

    /// When lines that wait are to be written at the latest; nil where none wait.
    var flushDue: UInt64? { buffer.count == 0 ? nil : oldest + Self.intervalNanoseconds }

    /// Writes the lines that wait.
    mutating func flush() {
        guard buffer.count > 0 else { return }
        if (try? writeAll(buffer.bytes, to: descriptor, name: "--journal")) == nil {
            hasFailed = true
        }
        buffer.removeAll()
    }
}
