import BroadsideObservability
import BroadsidePayloads

extension AlertText {
    /// What a campaign shows; of a template, what the first row that is sent gets, with its token shortened.
    ///
    /// - Returns: nil if that is not known.
    init?(_ plan: Plan, firstRow: FirstRow?) {
        let set = plan.payloads.set
        let payload =
            set.isPersonal ? firstRow?.shownPayload : set.templates.first?.constantPayload
        guard let payload else { return nil }
        self.init(payload: payload)
        isFirstRows = set.isPersonal
    }
}
