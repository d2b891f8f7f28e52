import BroadsidePrimitives
internal import BroadsideRows

extension PayloadRenderer {
    /// The value that made a row invalid.
    public struct Culprit: Sendable, Equatable {
        /// The use of the value.
        public enum Use: Sendable, Equatable {
            case text
            case integer
            case badge
            case interruptionLevel
            case boolean
            case collapseID
            case topic
            /// A topic with which the number of topics would exceed the limit.
            case topicBeyondLimit
            /// The name of the row's payload.
            case payloadName
            /// The longest value of a payload that has more bytes than this limit.
            case payloadOver(limit: Int)
        }

        /// Index of the value's field in the row layout.
        public var field: Int
        /// The use of the value.
        public var use: Use
    }

    /// Culprit for a value in the payload.
    static func culprit(_ step: Step) -> Culprit {
        let use: Culprit.Use =
            switch step.kind {
            case .text, .fit: .text
            case .integer: .integer
            case .badge: .badge
            case .interruptionLevel: .interruptionLevel
            case .boolean: .boolean
            }
        return Culprit(field: Int(step.field), use: use)
    }

    /// Culprit for a payload that is too large: the longest of its values, except one that is
    /// shortened. nil if all of them are empty.
    func longestCulprit(_ script: Script, _ reader: borrowing RowReader) -> Culprit? {
        var longest: (field: Int, count: Int)?
        for index in script.steps where steps[index].kind != .fit {
            let field = Int(steps[index].field)
            let count = reader.field(field).count
            if count > longest?.count ?? 0 { longest = (field, count) }
        }
        return longest.map { Culprit(field: $0.field, use: .payloadOver(limit: limit)) }
    }

    /// Culprit for the first value in the collapse ID.
    func collapseCulprit(_ script: Script) -> Culprit? {
        script.steps.first.map { Culprit(field: Int(steps[$0].field), use: .collapseID) }
    }
}
