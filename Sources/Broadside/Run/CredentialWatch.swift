import BroadsideAPNs
import BroadsideEngine
import BroadsideSupport
import BroadsideTLS
internal import Glibc

/// Keeps a run's credential current: renews provider tokens and reloads files. Runs on the thread
/// that handles signals.
///
/// The file of `--auth-token-file` is checked each second. A separate thread reads the file,
/// because its disk may hang. Commands run on separate threads, too, and so do signatures by a
/// PKCS#11 token, which may hang. Keys are read on the thread that handles signals. A separate thread
/// would only wait afterwards and not reuse its freed memory, so keys would remain in that memory.
final class CredentialWatch {
    /// A request for a new provider token. The reader either runs the token's command, or reads the
    /// file of `--auth-token-file` if the file has changed since the mark.
    private struct Job: Sendable {
        let token: ExternalProviderToken
        let mark: ExternalProviderToken.Mark?
    }

    private let plan: Plan
    private let coordinator: RunCoordinator
    private let tlsConfiguration: TLSConfigurationBox
    /// Keeps the credential that was read, for later passes.
    private let requests: OperatorRequests
    /// Reads provider tokens in the background; a nil result means that the token's file is
    /// unchanged.
    private let reader: BackgroundWorker<Job, ExternalProviderTokenWatch.Reading?>
    /// Credential in use.
    private var sender: Sender
    private var suppliedToken: ExternalProviderTokenWatch?
    /// Start of the current read; nil: none is running.
    private var readingSince: UInt64?
    private var didWarnAboutSlowReading = false
    private var didWarnAboutThread = false
    /// Runs the command for a new token.
    private let shell = ShellCommand()
    /// Runs the options' command after SIGHUP. The thread that handles SIGHUP then reads the
    /// command's output.
    private let reloader: BackgroundWorker<Void, Printed>
    private let reloadShell = ShellCommand()
    private var isReloading = false

    /// Makes provider tokens with a key in a PKCS#11 token.
    private let signer: BackgroundWorker<Signing, Signed>
    /// Start of the current signature; nil: none is awaited.
    private var signingSince: UInt64?
    private var didWarnAboutSlowSigning = false
    private var didWarnAboutSigning = false
    /// Number of times that the credential was replaced. A signature by an earlier one is not used.
    private var replacements = 0

    /// A provider token that a PKCS#11 token has to sign.
    private struct Signing: Sendable {
        let request: RunCoordinator.TokenRequest
        /// Value of `replacements` at the time of the request.
        let replacements: Int
    }

    /// Result of a signature.
    private struct Signed: Sendable {
        let signing: Signing
        /// `bearer ...`; nil on failure.
        let value: [UInt8]?
    }

    /// Result of a command that was run after SIGHUP.
    private enum Printed: Sendable {
        case secret(SecretBytes)
        case failed(BroadsideError)
    }

    /// Duration after which a read or a signature counts as slow, which is reported once.
    private static var slowReading: UInt64 { 10 * second }

    init(
        _ plan: Plan, _ sender: Sender, coordinator: RunCoordinator,
        tlsConfiguration: TLSConfigurationBox, requests: OperatorRequests, now: Now
    ) {
        self.plan = plan
        self.coordinator = coordinator
        self.tlsConfiguration = tlsConfiguration
        self.requests = requests
        self.sender = sender
        suppliedToken = ExternalProviderTokenWatch(sender.credential, now: now)
        reader = BackgroundWorker { [shell] in .read($0.token, since: $0.mark, by: shell) }
        reloader = BackgroundWorker { [shell = reloadShell, options = plan.options] _ in
            do throws(BroadsideError) {
                var bytes = try SecretCommand.print(options, by: shell)
                return .secret(SecretBytes(taking: &bytes))
            } catch {
                return .failed(error)
            }
        }
        signer = BackgroundWorker { Signed(signing: $0, value: $0.request.make()) }
        coordinator.awaitTokensFromElsewhere(suppliedToken?.isFromCommand ?? false)
    }

    /// Cancels commands that still run at the end of the pass.
    func end() {
        if isReloading { requests.reloadLater() }
        shell.cancel()
        reloadShell.cancel()
    }

    /// Performs the checks that are due.
    ///
    /// - Returns: True if the reactors have a new authorization to send with.
    func poll(_ now: Now) -> Bool {
        let version = coordinator.authorizationVersion
        take(now)
        takePrinted(now)
        let isStale = coordinator.isTokenMissing
        if let suppliedToken, suppliedToken.isDue(now, isStale: isStale), readingSince == nil,
            !coordinator.isStopping
        {
            read(Job(token: suppliedToken.token, mark: suppliedToken.lastMark), now)
            self.suppliedToken?.wait(now, isStale: isStale)
        }
        takeSignature(now)
        renewToken(now)
        return coordinator.authorizationVersion != version
    }

    // MARK: Signing

    /// Makes the requested provider token, if any.
    private func renewToken(_ now: Now) {
        guard signingSince == nil, let request = coordinator.tokenRequest(now) else { return }
        guard case .key(let key, _, _) = sender.credential, key.isInToken else {
            return take(request.make(), for: request, now)
        }
        guard !coordinator.isStopping else { return }
        do throws(BroadsideError) {
            try signer.put(Signing(request: request, replacements: replacements))
            signingSince = now.nanoseconds
        } catch {
            take(nil, for: request, now)
        }
    }

    private func take(_ value: [UInt8]?, for request: RunCoordinator.TokenRequest, _ now: Now) {
        let isNew = coordinator.take(value, for: request, now)
        if !isNew, !didWarnAboutSigning, !coordinator.isStopping {
            warn(
                "the signing key can't sign: the previous provider token stays in use while it is "
                    + "valid, and each minute the key is tried again")
        }
        didWarnAboutSigning = !isNew
    }

    /// Takes the result of a signature by the separate thread.
    private func takeSignature(_ now: Now) {
        guard let begin = signingSince else { return }
        guard let signed = signer.take() else {
            if now.nanoseconds > begin + Self.slowReading, !didWarnAboutSlowSigning {
                didWarnAboutSlowSigning = true
                warn(
                    "a signature by the PKCS#11 token has taken \(Self.slowReading / second) s so "
                        + "far: the previous provider token stays in use")
            }
            return
        }
        guard signed.signing.replacements == replacements else { return }
        signingSince = nil
        didWarnAboutSlowSigning = false
        take(signed.value, for: signed.signing.request, now)
    }

    // MARK: Reloading

    /// Reloads keys, certificates and the token file, and replaces the connections. Nothing changes
    /// if a file can't be read or the credential is another sender's.
    func reload(_ now: Now) {
        guard SecretCommand.isNamed(plan.options) else { return reload(now, printed: nil) }
        // If the command is already running, its output is as recent as that of a second command.
        guard !isReloading else { return }
        do throws(BroadsideError) {
            try reloader.put(())
            isReloading = true
        } catch {
            warn("\(error.message); the previous credential stays in use")
        }
    }

    /// Takes the output of a command that was run after SIGHUP.
    private func takePrinted(_ now: Now) {
        guard isReloading, let printed = reloader.take() else { return }
        isReloading = false
        switch printed {
        case .secret(let secret): reload(now, printed: secret)
        case .failed(let error): warn("\(error.message); the previous credential stays in use")
        }
    }

    private func reload(_ now: Now, printed: SecretBytes?) {
        var warnings: [String] = []
        let found = ReloadedCredential.read(
            plan.options, plan.headers, after: plan.credential,
            accepted: coordinator.anyAccepted ? sender.credential : nil, printed: printed,
            warnings: &warnings)
        if let found { replace(found, now) }
        for warning in warnings { warn(warning) }
    }

    private func read(_ job: Job, _ now: Now) {
        do throws(BroadsideError) {
            assert(readingSince == nil, "one reading at a time")
            try reader.put(job)
            readingSince = now.nanoseconds
        } catch {
            if !didWarnAboutThread {
                warn("\(error.message); the previous provider token stays in use")
            }
            didWarnAboutThread = true
        }
    }

    /// Takes the result of a read by the separate thread.
    private func take(_ now: Now) {
        guard let begin = readingSince else { return }
        guard let reading = reader.take() else {
            if now.nanoseconds > begin + Self.slowReading, !didWarnAboutSlowReading,
                suppliedToken?.isFromCommand == false
            {
                didWarnAboutSlowReading = true
                warn(
                    "reading the file of --auth-token-file has taken "
                        + "\(Self.slowReading / second) s so far: does its disk hang? The previous token "
                        + "stays in use")
            }
            return
        }
        readingSince = nil
        didWarnAboutSlowReading = false
        guard let reading, var watch = suppliedToken else { return }
        watch.take(reading, now, coordinator: coordinator)
        suppliedToken = watch
        sender.credential = .suppliedToken(watch.token)
        requests.sender = sender
    }

    private func replace(_ found: ReloadedCredential, _ now: Now) {
        sender = found.sender
        replacements += 1
        signingSince = nil
        requests.sender = sender
        suppliedToken = ExternalProviderTokenWatch(sender.credential, now: now)
        coordinator.awaitTokensFromElsewhere(suppliedToken?.isFromCommand ?? false)
        let isSameKey = coordinator.replaceSigner(found.authorization.sign)
        if let value = found.authorization.value, !isSameKey,
            value != coordinator.authorization().value
        {
            if let token = suppliedToken?.token {
                suppliedToken?.offer(token, to: coordinator, now)
            } else {
                coordinator.take(
                    authorization: value, issuedAt: found.authorization.issuedAtSeconds, now)
            }
        }
        tlsConfiguration.replace(sender.route.tlsConfiguration(sender.context))
        coordinator.replaceConnections()
        standardErrorLine(
            "broadside: credentials were read again "
                + "(\(sender.credential.summary)): connections are being replaced, one "
                + "after another")
        guard let option = Self.copiedCredential(plan.options) else { return }
        standardErrorLine(
            "broadside: warning: --\(option) is the copy that systemd made when "
                + "the unit started (LoadCredential), and that copy does not change: "
                + "restart the unit to use another one, or name a path outside "
                + "$CREDENTIALS_DIRECTORY")
    }

    /// Option that names a file of systemd's `LoadCredential=`; nil if no option does. Such a file
    /// is a copy, which does not change until the unit is started again.
    private static func copiedCredential(_ options: SendOptions) -> String? {
        guard let folder = SystemCall.environment("CREDENTIALS_DIRECTORY") else { return nil }
        let files = [
            ("auth-key", KeySource(options)?.path), ("auth-token-file", options.authTokenFile),
            ("certificate", options.certificate), ("private-key", options.privateKey),
            ("passphrase-file", options.passphraseFile), ("ca-file", options.caFile),
            ("proxy-auth-file", options.proxyAuthFile),
        ]
        return files.first { $0.1?.hasPrefix(folder + "/") == true }?.0
    }

    private func warn(_ text: String) { standardErrorLine("broadside: warning: \(text)") }
}

/// Credential of a run, with the route and the configuration of its TLS sessions.
struct Sender: Sendable {
    var credential: Credential
    let route: Route
    let context: TLSContext
}

/// Credential that was reloaded and checked.
private struct ReloadedCredential: Sendable {
    let sender: Sender
    let authorization: Credential.Authorization

    /// Reads all files that the options name.
    ///
    /// - Parameters:
    ///   - options: Options of the run.
    ///   - headers: Headers of the campaign.
    ///   - other: Credential at the start of the run.
    ///   - accepted: Current credential, if APNs has accepted a notification from this run.
    ///     Otherwise nil, because the credential may be wrong.
    ///   - printed: Output of the options' command; nil if the options name no command.
    ///   - warnings: Receives the warnings.
    /// - Returns: nil if a file can't be read, or the credential is another sender's; the last
    ///   warning has the cause.
    static func read(
        _ options: SendOptions, _ headers: NotificationHeaders, after other: Credential,
        accepted: Credential?, printed: SecretBytes?, warnings: inout [String]
    ) -> ReloadedCredential? {
        do throws(BroadsideError) {
            try checkFiles(options)
            let credential = try Credential.read(
                options, warnings: &warnings, printed: printed)
            try credential.check(headers, options)
            try credential.checkSuccession(of: other, headers: headers)
            if let accepted { try credential.checkKey(of: accepted, options) }
            return ReloadedCredential(
                sender: Sender(
                    credential: credential,
                    route: try Route.read(options, warnings: &warnings),
                    context: try CampaignRun.tlsContext(
                        options, credential, resumesSessions: true)),
                authorization: try credential.authorization(
                    nowSeconds: Clock.now().wallMilliseconds / 1000))
        } catch {
            warnings.append("\(error.message); the previous credential stays in use")
            return nil
        }
    }

    /// Refuses pipes, and files of the credential that have disappeared since the start of the run.
    /// A pipe can be read only at the start, because it may have no writer later.
    private static func checkFiles(_ options: SendOptions) throws(BroadsideError) {
        let files = [
            ("auth-key", KeySource(options)?.path), ("auth-token-file", options.authTokenFile),
            ("certificate", options.certificate), ("private-key", options.privateKey),
            ("passphrase-file", options.passphraseFile), ("ca-file", options.caFile),
            ("proxy-auth-file", options.proxyAuthFile),
        ]
        for case (let option, let path?) in files {
            guard SystemCall.status(path) != nil else {
                throw .file(option: option, path, errno: errno, "put the file back")
            }
            if isPipe(path) {
                throw .usage(option, "\(path) is a pipe, which is read at the start only")
            }
        }
    }
}
