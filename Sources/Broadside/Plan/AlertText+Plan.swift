import BroadsideObservability
import BroadsidePayloads

extension AlertText {
    /// Alert of a campaign. For a template, this is the alert of the first row to send, with the
    /// row's token shortened.
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
