import APNs
import Campaign
import Engine
import Support
import TLS

/// What a run's credential needs while the run continues: provider tokens renewed, files read again. On the
/// thread that takes signals: the files are read on a thread of their own, as their disk may hang.
final class CredentialWatch {
    /// What is read.
    private enum Job: Sendable {
        /// The file of `--auth-token-file`, if it is another than this.
        case token(ExternalProviderToken, since: ExternalProviderToken.Mark?)
        /// All files that the options name.
        case all
    }

    /// What was read.
    fileprivate enum Reading: Sendable {
        /// nil: the file is as it was.
        case token(ExternalProviderTokenWatch.Reading?)
        case all(ReloadedCredential?, warnings: [String])
    }

    private let plan: Plan
    private let coordinator: RunCoordinator
    private let recipe: TLSRecipe
    private let reader: BackgroundWorker<Job, Reading>
    private var suppliedToken: ExternalProviderTokenWatch?
    /// A signal came, and what it asks for was not begun yet.
    private var isReloadDue = false
    /// When the reading began that is not at its end; nil: none is.
    private var readingSince: UInt64?
    private var hasToldSlowReading = false
    private var hasToldNoThread = false

    /// A reading that takes longer is reported, once.
    private static var slowReading: UInt64 { 10 * second }

    init(_ plan: Plan, coordinator: RunCoordinator, recipe: TLSRecipe, now: Now) {
        self.plan = plan
        self.coordinator = coordinator
        self.recipe = recipe
        suppliedToken = ExternalProviderTokenWatch(plan.credential, now: now)
        let (options, headers, credential) = (plan.options, plan.headers, plan.credential)
        reader = BackgroundWorker { job in
            switch job {
            case .token(let token, let mark): .token(.read(token, since: mark))
            case .all: ReloadedCredential.read(options, headers, after: credential)
            }
        }
    }

    /// Does what has become due.
    ///
    /// - Returns: True where the reactors have something new to send with.
    func look(_ now: Now) -> Bool {
        take(now)
        if isReloadDue {
            if read(.all, now) { isReloadDue = false }
        } else if let suppliedToken, suppliedToken.isDue(now) {
            if read(.token(suppliedToken.token, since: suppliedToken.lastMark), now) {
                self.suppliedToken?.wait(now)
            }
        }
        return coordinator.renewToken(now) != nil
    }

    /// Has keys, certificates and token file read again, and the connections replaced. What can't be
    /// read or is another sender's changes nothing.
    func reload(_ now: Now) {
        isReloadDue = true
        _ = look(now)
    }

    /// - Returns: Whether it was begun: one reading at a time.
    private func read(_ job: Job, _ now: Now) -> Bool {
        guard readingSince == nil else { return false }
        do throws(BroadsideError) {
            try reader.put(job)
            readingSince = now.nanoseconds
        } catch {
            if !hasToldNoThread { warn("\(error.message); the credentials in use stay") }
            hasToldNoThread = true
        }
        return true
    }

    /// Takes what was read in the meantime.
    private func take(_ now: Now) {
        guard let begin = readingSince else { return }
        guard let reading = reader.take() else {
            if now.nanoseconds > begin + Self.slowReading, !hasToldSlowReading {
                hasToldSlowReading = true
                warn(
                    "the credentials' files have not been read for "
                        + "\(Self.slowReading / second) s: does their disk hang? What was read before "
                        + "stays in use")
            }
            return
        }
        readingSince = nil
        hasToldSlowReading = false
        switch reading {
        case .token(let found):
            if let found { suppliedToken?.take(found, now, coordinator: coordinator) }
        case .all(let found, let warnings):
            if let found { replace(found, now) }
            for warning in warnings { warn(warning) }
        }
    }

    private func replace(_ found: ReloadedCredential, _ now: Now) {
        suppliedToken = ExternalProviderTokenWatch(found.credential, now: now)
        let isSameKey = coordinator.replaceSigner(found.authorization.sign)
        if let value = found.authorization.value, !isSameKey,
            value != coordinator.authorization().value
        {
            coordinator.take(
                authorization: value, issuedAt: found.authorization.issuedAtSeconds, now)
        }
        recipe.replace(found.route.recipe(found.context))
        coordinator.replaceConnections()
        standardErrorLine(
            "broadside: credentials were read again (\(found.credential.summary)): connections are "
                + "replaced one after the other")
    }

    private func warn(_ text: String) { standardErrorLine("broadside: warning: \(text)") }
}

/// What was read again, and checked.
private struct ReloadedCredential: Sendable {
    let credential: Credential
    let route: Route
    let context: TLSContext
    let authorization: Credential.Authorization

    /// Reads all files that the options name.
    ///
    /// - Parameters:
    ///   - options: Of the run.
    ///   - headers: The campaign's.
    ///   - other: What the run began with.
    static func read(
        _ options: SendOptions, _ headers: NotificationHeaders, after other: Credential
    ) -> CredentialWatch.Reading {
        var warnings: [String] = []
        do throws(BroadsideError) {
            try refusePipes(options)
            let credential = try Credential.read(options, warnings: &warnings)
            try credential.check(headers, options)
            try credential.checkSuccession(of: other, headers: headers)
            let found = ReloadedCredential(
                credential: credential,
                route: try Route.read(options, warnings: &warnings),
                context: try CampaignRun.tlsContext(options, credential),
                authorization: try credential.authorization(
                    nowSeconds: Clock.now().wallMilliseconds / 1000))
            return .all(found, warnings: warnings)
        } catch {
            warnings.append("\(error.message); what was read before stays in use")
            return .all(nil, warnings: warnings)
        }
    }

    /// Names a pipe, which is read at the start only: whether anybody writes to it again is unknown.
    private static func refusePipes(_ options: SendOptions) throws(BroadsideError) {
        let files = [
            ("auth-key", options.authKey), ("auth-token-file", options.authTokenFile),
            ("certificate", options.certificate), ("private-key", options.privateKey),
            ("passphrase-file", options.passphraseFile), ("ca-file", options.caFile),
            ("proxy-auth-file", options.proxyAuthFile),
        ]
        for case (let option, let path?) in files where isPipe(path) {
            throw .usage(option, "\(path) is a pipe, which is read at the start only")
        }
    }
}
