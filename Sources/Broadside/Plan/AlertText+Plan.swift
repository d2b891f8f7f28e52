import BroadsideObservability
import BroadsidePayloads

extension AlertText {
    /// Alert of a campaign; for a template, the alert of the first row to send, with its token
    /// shortened.
    ///
    /// - Returns: nil if unknown.
    init?(_ plan: Plan, firstRow: FirstRow?) {
        let set = plan.payloads.set
        let payload =
            set.isPersonal ? firstRow?.shownPayload : set.templates.first?.constantPayload
        guard let payload else { return nil }
        self.init(payload: payload)
        isFirstRows = set.isPersonal
    }
}
