import APNs
import Campaign
import Engine
import Ledgers
import Support
import TLS

/// What a run's credential needs while the run goes on: provider tokens renewed and kept, files read
/// again. On the thread that watches over the reactors, which may wait for a disk.
final class CredentialWatch {
    private let plan: Plan
    private let directory: LedgerDirectory
    private let coordinator: RunCoordinator
    private let recipe: TLSRecipe
    private var tokenFile: ProviderTokenFile?
    private var suppliedToken: ExternalProviderTokenWatch?

    init(
        _ plan: Plan, directory: LedgerDirectory, coordinator: RunCoordinator, recipe: TLSRecipe,
        now: Now
    ) {
        self.plan = plan
        self.directory = directory
        self.coordinator = coordinator
        self.recipe = recipe
        take(plan.credential, now: now)
    }

    private func take(_ credential: Credential, now: Now) {
        tokenFile = credential.tokenFile(in: directory)
        suppliedToken = ExternalProviderTokenWatch(credential, now: now)
    }

    /// Does what has become due.
    ///
    /// - Returns: True where the reactors have something new to send with.
    func look(_ now: Now) -> Bool {
        suppliedToken?.look(now, coordinator: coordinator)
        return coordinator.renewToken(now) { value, issuedAt in
            do throws(BroadsideError) {
                try tokenFile?.keep(value, issuedAtSeconds: issuedAt)
            } catch {
                standardErrorLine(
                    "broadside: warning: a new provider token could not be kept for a later "
                        + "resume: \(error.message)")
            }
        }
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
                in: directory, nowSeconds: now.wallMilliseconds / 1000)
            take(credential, now: now)
            coordinator.replaceSigner(authorization.sign)
            if let value = authorization.value, value != coordinator.authorization().value {
                coordinator.take(authorization: value, issuedAt: authorization.issuedAtSeconds)
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
