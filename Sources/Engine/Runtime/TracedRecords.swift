import BroadsideHTTP2
import BroadsideSupport

/// TLS with a trace of the plaintext in both directions. It is a separate record layer, so that
/// runs without a trace need not check for one.
struct TracedRecords: RecordLayer, ~Copyable {
    /// Configuration of a traced run's sessions.
    struct Configuration: Sendable {
        var records: TLSConfigurationBox
        var file: FrameTraceFile
    }

    private var records: TLSRecords
    private var sent = FrameTracer(isClient: true)
    private var received = FrameTracer(isClient: false)
    private let file: FrameTraceFile
    private let connection: Int

    init(configuration: Configuration) throws(RecordLayerError) {
        records = try TLSRecords(configuration: configuration.records)
        file = configuration.file
        connection = configuration.file.nextConnection()
    }

    var closedEarly: RecordLayerError? { records.closedEarly }

    var isEstablished: Bool { records.isEstablished }

    mutating func receive(
        _ input: RawSpan, at offset: inout Int, plaintext: inout OutputRawSpan,
        ciphertext: inout OutputRawSpan
    ) -> RecordLayerResult {
        let before = plaintext.byteCount
        let result = records.receive(
            input, at: &offset, plaintext: &plaintext, ciphertext: &ciphertext)
        if plaintext.byteCount > before {
            var lines = ""
            let (connection, now) = (connection, Clock.now().wallMilliseconds)
            received.take(plaintext.bytes.extracting(droppingFirst: before)) { frame in
                lines += FrameTraceLine.text(
                    frame, connection: connection, isSent: false, milliseconds: now)
            }
            file.append(lines)
        }
        return result
    }

    mutating func seal(_ plaintext: RawSpan, ciphertext: inout OutputRawSpan) -> Bool {
        var lines = ""
        let (connection, now) = (connection, Clock.now().wallMilliseconds)
        sent.take(plaintext) { frame in
            lines += FrameTraceLine.text(
                frame, connection: connection, isSent: true, milliseconds: now)
        }
        file.append(lines)
        return records.seal(plaintext, ciphertext: &ciphertext)
    }

    mutating func close(ciphertext: inout OutputRawSpan) {
        records.close(ciphertext: &ciphertext)
    }

    static func sealedCount(_ plaintextCount: Int) -> Int {
        TLSRecords.sealedCount(plaintextCount)
    }
}
