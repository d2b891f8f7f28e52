import BroadsidePrimitives

extension PayloadRenderer {
    /// The value for which a row was refused.
    public struct Culprit: Sendable, Equatable {
        /// What the value is for.
        public enum Use: Sendable, Equatable {
            case text
            case integer
            case boolean
            case collapseID
            case topic
            /// A topic beyond the limit on topics.
            case topicBeyondLimit
            /// It says which payload the row gets.
            case payloadName
        }

        /// The field of the layout that has it.
        public var field: Int
        /// What it is for.
        public var use: Use
    }

    /// A value for the payload.
    static func culprit(_ step: Step) -> Culprit {
        let use: Culprit.Use =
            switch step.kind {
            case .text, .fit: .text
            case .integer: .integer
            case .boolean: .boolean
            }
        return Culprit(field: Int(step.field), use: use)
    }

    /// The first value for the collapse ID.
    func collapseCulprit(_ script: Script) -> Culprit? {
        script.steps.first.map { Culprit(field: Int(steps[$0].field), use: .collapseID) }
    }
}
