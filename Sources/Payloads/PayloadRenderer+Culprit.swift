import BroadsidePrimitives

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

    /// Culprit for the first value in the collapse ID.
    func collapseCulprit(_ script: Script) -> Culprit? {
        script.steps.first.map { Culprit(field: Int(steps[$0].field), use: .collapseID) }
    }
}
