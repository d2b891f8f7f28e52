import BroadsideEngine
import BroadsideObservability

extension StopAdvice.Circumstances {
    /// Creates the circumstances of a run that ends now, or that ended before it began to send.
    init(_ plan: Plan, _ session: LedgerSession, _ summary: Summary, wasAnswered: Bool) {
        self.init(
            wasAnswered: wasAnswered, hasEndpoint: plan.options.endpoint != nil,
            environment: plan.options.tokenEnvironment.rawValue,
            isBinary: plan.options.wireProtocol == .binary, ledger: session.directory.path,
            command: plan.options.command)
        take(summary)
        hasProxy = plan.route.proxy != nil
        credential = StopAdvice.CredentialKind(plan.credential)
        hasRowTopics = plan.namesTopics
        firstTopic = plan.payloads.firstTopic
        armsHaveCollapseIDs = plan.options.armsHaveCollapse
        armsHavePriorities = plan.options.arms.contains { $0.priority != nil }
        legacyHint = Plan.legacyHint(port: plan.route.port)
        if !hasProxy { proxyHint = ProxyAddress.unusedVariable.map(ProxyAddress.hint) }
    }
}

extension StopAdvice.CredentialKind {
    init(_ credential: Credential) {
        self =
            switch credential {
            case .key: .key
            case .suppliedToken: .suppliedToken
            case .certificate: .certificate
            }
    }
}
