import APNs
import Campaign
import Engine

/// What `send` would make of the rows of a list, without sending them.
@safe struct RowInspector: ~Copyable {
    /// Why a row is invalid.
    struct Finding: Equatable {
        var reason: Reason
        /// The token is good; what the campaign makes of the row's other columns is not.
        var isPersonal: Bool
    }

    private var renderer: PayloadRenderer
    private let isPersonal: Bool
    private let room: UnsafeMutableRawBufferPointer

    init(_ payloads: PayloadSet, layout: RowLayout) {
        renderer = PayloadRenderer(payloads, layout: layout)
        isPersonal = payloads.isPersonal
        unsafe room = .allocate(byteCount: RowSlab.tokenDigitsLimit, alignment: 8)
    }

    deinit {
        unsafe room.deallocate()
    }

    /// Rows whose value has no payload of its own.
    var fallbackCounts: FallbackCounts { renderer.fallbackCounts }

    /// Why the row that was read last is invalid, which holds no token.
    static func tokenFinding(in reader: borrowing RowReader) -> Finding {
        Finding(reason: reader.refusal(of: reader.field(0)), isPersonal: false)
    }

    /// Why the row that was read last is invalid; nil where it is not.
    mutating func finding(in reader: borrowing RowReader) -> Finding? {
        var digits = unsafe OutputRawSpan(buffer: room, initializedCount: 0)
        let refusal = reader.readToken(reader.field(0), into: &digits)
        _ = unsafe digits.finalize(for: room)
        if let refusal { return Finding(reason: refusal, isPersonal: false) }
        if isPersonal, case .invalid(let reason) = renderer.render(reader) {
            return Finding(reason: reason, isPersonal: true)
        }
        return nil
    }
}
