internal import BroadsideSupport

/// Finds rows whose alert has no text because the values for the text are empty or blank.
public struct BlankAlerts: Sendable {
    /// For each payload, whether each of its placeholders is in a text of the alert. Empty if all
    /// rows, or none, have an alert without text.
    private let placeholders: [[Bool]]

    /// Finds the placeholders in the alerts of a set's payloads.
    public init(_ set: PayloadSet) { placeholders = set.templates.map(Self.placeholders) }

    private static func placeholders(_ template: PayloadTemplate) -> [Bool] {
        guard isBlank(template, filledIn: nil) else { return [] }
        let found = template.segments.indices.map { !isBlank(template, filledIn: $0) }
        return found.contains(true) ? found : []
    }

    /// Whether a payload has an alert without text if at most one of its placeholders has a value.
    private static func isBlank(_ template: PayloadTemplate, filledIn filled: Int?) -> Bool {
        var payload: [UInt8] = []
        for (index, segment) in template.segments.enumerated() {
            payload += segment.constant
            switch segment.placeholder.kind {
            case .text, .fit, .interruptionLevel: payload += index == filled ? Array("x".utf8) : []
            case .integer, .badge: payload += Array("1".utf8)
            case .boolean: payload += Array("true".utf8)
            }
        }
        payload += template.tail
        return (try? PayloadDocument(payload.rawSpan))?.blankAlert != nil
    }

    /// Whether the row that was rendered last has an alert without text.
    ///
    /// - Parameter shape: Layout of the row's pieces.
    public func includes(
        _ shape: PayloadRenderer.Shape, of renderer: borrowing PayloadRenderer
    ) -> Bool {
        let isInAlert = placeholders[Int(shape.template)]
        let pieces = renderer.lastPieces
        var offset = 0
        for isInAlert in isInAlert {
            let start = offset + 2
            offset = start + Int(pieces.byte(at: offset)) + Int(pieces.byte(at: offset + 1)) << 8
            guard isInAlert else { continue }
            for place in start..<offset where pieces.byte(at: place) != UInt8(ascii: " ") {
                return false
            }
        }
        return !isInAlert.isEmpty
    }
}
