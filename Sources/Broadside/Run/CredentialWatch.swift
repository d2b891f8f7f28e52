import APNs
import Campaign
import Engine
import Support
import TLS

/// What a run's credential needs while the run continues: provider tokens renewed, files read again. On the
/// thread that watches over the reactors, which may wait for a disk.
final class CredentialWatch {
    private let plan: Plan
    private let coordinator: RunCoordinator
    private let recipe: TLSRecipe
    private var suppliedToken: ExternalProviderTokenWatch?

    init(_ plan: Plan, coordinator: RunCoordinator, recipe: TLSRecipe, now: Now) {
        self.plan = plan
        self.coordinator = coordinator
        self.recipe = recipe
        suppliedToken = ExternalProviderTokenWatch(plan.credential, now: now)
    }

    /// Does what has become due.
    ///
    /// - Returns: True where the reactors have something new to send with.
    func look(_ now: Now) -> Bool {
        suppliedToken?.look(now, coordinator: coordinator)
        return coordinator.renewToken(now) != nil
    }

    /// Reads keys, certificates and token file again, and has the connections replaced. What can't be
    /// read or is another sender's changes nothing.
    func reload(_ now: Now) {
        var warnings: [String] = []
        do throws(BroadsideError) {
            let credential = try Credential.read(plan.options, warnings: &warnings)
            try credential.check(plan.headers, plan.options)
            try credential.checkSuccession(of: plan.credential, headers: plan.headers)
            let route = try Route.read(plan.options, warnings: &warnings)
            let context = try CampaignRun.tlsContext(plan.options, credential)
            let authorization = try credential.authorization(
                nowSeconds: now.wallMilliseconds / 1000)
            suppliedToken = ExternalProviderTokenWatch(credential, now: now)
            let isSameKey = coordinator.replaceSigner(authorization.sign)
            if let value = authorization.value, !isSameKey,
                value != coordinator.authorization().value
            {
                coordinator.take(
                    authorization: value, issuedAt: authorization.issuedAtSeconds, now)
            }
            recipe.replace(route.recipe(context))
            coordinator.replaceConnections()
            standardErrorLine(
                "broadside: credentials were read again (\(credential.summary)): connections are "
                    + "replaced one after the other")
        } catch {
            warnings.append("\(error.message); what was read before stays in use")
        }
        for warning in warnings { standardErrorLine("broadside: warning: \(warning)") }
    }
}
