import BroadsideAPNs
import BroadsideEngine
import BroadsidePayloads
import BroadsideRows

/// What `send` would make of the rows of a list, without sending them.
struct RowInspector: ~Copyable {
    /// Why a row is invalid.
    struct Finding: Equatable {
        var reason: Reason
        /// The token is good; what the campaign makes of the row's other columns is not.
        var isPersonal: Bool
        /// The value for which the row is invalid; nil if it is not for one alone.
        var culprit: PayloadRenderer.Culprit?

        /// The row's topic is wrong.
        var isOfTopic: Bool { culprit?.use == .topic || culprit?.use == .topicBeyondLimit }
    }

    private var renderer: PayloadRenderer
    private let isPersonal: Bool
    private var digits = TokenDigits()

    init(_ payloads: PayloadSet, layout: RowLayout) {
        renderer = PayloadRenderer(payloads, layout: layout)
        isPersonal = payloads.isPersonal
    }

    /// Rows whose value has no payload of its own.
    var fallbackCounts: FallbackCounts { renderer.fallbackCounts }

    /// Rows whose payload has a value that was shortened.
    var shortenedRows: UInt64 { renderer.shortenedRows }

    /// The digits of the token of the row that was inspected last, which has one.
    var tokenDigitCount: Int { digits.bytes.byteCount }

    /// Why the row that was read last is invalid, which holds no token.
    static func tokenFinding(in reader: borrowing RowReader) -> Finding {
        Finding(reason: reader.refusal(of: reader.field(0)), isPersonal: false)
    }

    /// Why the row that was read last is invalid; nil where it is not.
    mutating func finding(in reader: borrowing RowReader) -> Finding? {
        let refusal = digits.write { reader.readToken(reader.field(0), into: &$0) }
        if let refusal { return Finding(reason: refusal, isPersonal: false) }
        if isPersonal, case .invalid(let reason) = renderer.render(reader) {
            return Finding(reason: reason, isPersonal: true, culprit: renderer.culprit)
        }
        return nil
    }
}
