import BroadsideAPNs
import BroadsideEngine
import BroadsidePayloads
import BroadsideRows

/// Determines what `send` would do with the rows of a list, without sending them.
struct RowInspector: ~Copyable {
    /// Reason why a row is invalid.
    struct Finding: Equatable {
        var reason: Reason
        /// Whether the token is valid and other columns of the row cause the problem.
        var isPersonal: Bool
        /// The value that makes the row invalid; nil if no single value does.
        var culprit: PayloadRenderer.Culprit?

        /// Field with the unknown time zone that makes the row invalid; nil if there is none.
        var zoneField: Int?

        /// Finding for a row whose time zone is unknown.
        static func badZone(_ options: DeliveryOptions, _ layout: RowLayout) -> Finding {
            Finding(
                reason: .badZone, isPersonal: true,
                zoneField: options.zoneColumn.flatMap { layout.field(named: $0) })
        }

        /// Whether the row's topic is invalid.
        var isOfTopic: Bool { culprit?.use == .topic || culprit?.use == .topicBeyondLimit }
    }

    private var renderer: PayloadRenderer
    private let isPersonal: Bool
    private let blankAlerts: BlankAlerts
    private var digits = TokenDigits()
    /// Whether the last inspected row is valid and has an alert without text, although its payload
    /// has placeholders for the text.
    private(set) var hasBlankAlert = false
    /// Whether any valid row has a payload file for its value in the `--payload-by` column.
    private var hasOwnPayload = false

    init(_ payloads: PayloadSet, layout: RowLayout) {
        renderer = PayloadRenderer(payloads, layout: layout)
        isPersonal = payloads.isPersonal
        blankAlerts = BlankAlerts(payloads)
    }

    /// Row count for each value of the `--payload-by` column that has no payload file.
    var fallbackCounts: FallbackCounts { renderer.fallbackCounts }

    /// The values of the `--payload-by` column, if no row so far has a payload file for its value;
    /// otherwise nil.
    var unmatchedValues: UnmatchedValues? {
        hasOwnPayload ? nil : UnmatchedValues(fallbackCounts)
    }

    /// Number of the arm of the last inspected row; 0 if there are no arms.
    var arm: UInt8 { renderer.lastArm }

    /// Number of rows whose payload contains a shortened value; nil if payloads never shorten
    /// values.
    var shortenedRows: UInt64? { renderer.mayShorten ? renderer.shortenedRows : nil }

    /// Number of digits in the token of the last inspected row. The row must have a token.
    var tokenDigitCount: Int { digits.bytes.byteCount }

    /// Fingerprint of the token of the last inspected row. The row must have a token.
    var tokenFingerprint: UInt64 { TokenText.fingerprint(digits.bytes) }

    /// Reason why the row that was read last is invalid. The row must have no valid token.
    static func tokenFinding(in reader: borrowing RowReader) -> Finding {
        Finding(reason: reader.refusal(of: reader.field(0)), isPersonal: false)
    }

    /// Reason why the row that was read last is invalid; nil if it is valid.
    mutating func finding(in reader: borrowing RowReader) -> Finding? {
        hasBlankAlert = false
        let refusal = digits.write { reader.readToken(reader.field(0), into: &$0) }
        if let refusal { return Finding(reason: refusal, isPersonal: false) }
        guard isPersonal else { return nil }
        switch renderer.render(reader) {
        case .invalid(let reason):
            return Finding(reason: reason, isPersonal: true, culprit: renderer.culprit)
        case .made(let shape):
            hasBlankAlert = blankAlerts.includes(shape, of: renderer)
            if !renderer.lacksOwnPayload { hasOwnPayload = true }
            return nil
        }
    }
}
