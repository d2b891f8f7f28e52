internal import BroadsideSupport
internal import Glibc

/// The optional output file with one line for each notification delivered to a device.
struct DeliveryLines: Sendable {
    /// Number of buffered bytes that triggers a write.
    private static let flushCount = 1 << 16
    private static let flushIntervalMicroseconds: UInt64 = 200_000
    private static let header = "t_us,token,topic,apns_id,collapse_id,expiration,from\n"

    private let descriptor: Int32
    private var lines: [UInt8] = []
    private var oldestMicroseconds: UInt64 = 0
    private var hasFailed = false

    /// Creates or truncates the file and writes the header line.
    init(path: String?) throws(SimulatorError) {
        guard let path else {
            descriptor = -1
            return
        }
        descriptor = PrivateFile.openToAppend(path)
        guard descriptor >= 0 else {
            throw SimulatorError(
                "--deliveries \(path): \(describe(errno: errno)): name a file that can be written",
                exitCode: 2)
        }
        lines = Array(Self.header.utf8)
        flush()
    }

    /// Appends a line.
    mutating func append(
        _ notification: KeptNotification, _ token: [UInt8], _ from: StaticString,
        _ microseconds: UInt64
    ) {
        guard descriptor >= 0 else { return }
        if lines.isEmpty { oldestMicroseconds = microseconds }
        let envelope = notification.envelope
        field("\(microseconds)".utf8)
        field(token)
        field(envelope.topic)
        field(notification.identifier.indices.map { notification.identifier[$0] })
        field(Self.quoted(envelope.collapseIdentifier ?? []))
        field((envelope.expirationUnixSeconds.map(String.init) ?? "").utf8)
        lines += "\(from)\n".utf8
        if lines.count >= Self.flushCount { flush() }
    }

    private mutating func field(_ bytes: some Sequence<UInt8>) {
        lines += bytes
        lines.append(UInt8(ascii: ","))
    }

    /// Returns a CSV field, quoted if it contains a comma or a quotation mark.
    private static func quoted(_ bytes: [UInt8]) -> [UInt8] {
        let quote = UInt8(ascii: "\"")
        guard bytes.contains(where: { $0 == quote || $0 == UInt8(ascii: ",") }) else {
            return bytes
        }
        return [quote] + bytes.flatMap { $0 == quote ? [quote, quote] : [$0] } + [quote]
    }

    /// Writes the buffered lines if they are due; otherwise returns their due time, microseconds.
    mutating func flushDue(_ microseconds: UInt64) -> UInt64? {
        guard !lines.isEmpty else { return nil }
        let due = oldestMicroseconds + Self.flushIntervalMicroseconds
        if due > microseconds { return due }
        flush()
        return nil
    }

    /// Writes the buffered lines.
    mutating func flush() {
        guard !lines.isEmpty else { return }
        assert(descriptor >= 0, "lines are kept for a file")
        if (try? writeAll(lines, to: descriptor, name: "--deliveries")) == nil { hasFailed = true }
        lines.removeAll(keepingCapacity: true)
    }

    /// Writes the buffered lines and closes the file; returns true if every line was written.
    mutating func finish() -> Bool {
        flush()
        if descriptor >= 0 { _ = close(descriptor) }
        return !hasFailed
    }
}
