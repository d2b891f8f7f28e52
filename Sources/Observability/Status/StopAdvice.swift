import BroadsideAPNs
package import BroadsidePolicy
package import BroadsideRows
internal import BroadsideSupport
internal import Glibc

/// Advice after a run. The run's last line, the report and all commands that read a ledger give the
/// same advice.
package struct StopAdvice {
    /// Recommended action.
    package struct Step: Equatable {
        /// Text of the action, as part of a sentence. In the last line it follows the message and a
        /// colon.
        var text: String
        /// Command line to paste; nil if only the reader can determine it.
        var command: String?
    }

    /// Kind of the run's credential. Raw values are stored with the ledger.
    package enum CredentialKind: String {
        case key
        case suppliedToken = "supplied-token"
        case certificate
    }

    /// Facts on which the advice depends, in addition to the cause.
    package struct Circumstances {
        /// Whether the run received any response.
        var wasAnswered: Bool
        /// Whether `--endpoint` names the server. Otherwise, the server is the one of an APNs
        /// environment.
        var hasEndpoint: Bool
        var environment: String
        var isBinary: Bool
        /// Whether the ledger is that of a broadcast.
        var isBroadcast = false
        /// Kind of the credential.
        package var credential = CredentialKind.key
        /// Path of the ledger's directory, for use in advice.
        var ledger: String
        /// Command line of the run; nil if none was kept.
        var command: RunCommand?
        /// The states `failed` and `unknown`, if there are rows in them.
        var openStates: [RowState] = []
        /// Number of devices that have or may have got the notification.
        package var reachedCount: UInt64 = 0
        /// Number of rows that APNs accepted, in all runs of the ledger.
        var acceptedCount: UInt64 = 0
        /// Whether rows are in doubt. This includes rows that a run should have sent again but did
        /// not settle.
        package var hasDoubt = false
        /// Whether rows remain to be sent, or may remain.
        package var hasRemaining = true
        /// Reasons for tokens of another environment or app, the most frequent one first, if APNs
        /// accepted no row and refused all for these reasons; otherwise empty.
        var foreignReasons: [Reason] = []
        /// Number of rows that APNs refused permanently.
        var rejectedCount: UInt64 = 0
        /// Whether each row names its topic.
        package var hasRowTopics = false
        /// Topic of the first row, if each row names its topic; nil if it is not known.
        package var firstTopic: String?
        /// Whether arms have collapse IDs of their own.
        package var armsHaveCollapseIDs = false
        /// Whether arms have priorities of their own.
        package var armsHavePriorities = false
        /// Whether the ledger still exists. It is removed if nothing was sent.
        package var hasLedger = true
        /// Whether connections use `--proxy`.
        package var hasProxy = false
        /// The notice about this machine's proxy, which the run does not use; nil if it has no
        /// proxy.
        package var proxyHint: String?
        /// Advice about a server without HTTP/2 at a port of Apple's legacy services; nil for other
        /// ports.
        package var legacyHint: String?

        package init(
            wasAnswered: Bool, hasEndpoint: Bool, environment: String, isBinary: Bool,
            ledger: String, command: RunCommand? = nil, openStates: [RowState] = []
        ) {
            self.wasAnswered = wasAnswered
            self.hasEndpoint = hasEndpoint
            self.environment = environment
            self.isBinary = isBinary
            self.ledger = ledger
            self.command = command
            self.openStates = openStates
        }
    }

    let circumstances: Circumstances
    /// Whether the ledger still exists.
    package var hasLedger: Bool { circumstances.hasLedger }
    package private(set) var steps: [Step] = []

    /// - Returns: Advice without steps if nothing is left to do.
    package init(_ cause: StopCause, _ circumstances: Circumstances) {
        self.circumstances = circumstances
        switch cause {
        case .complete: retryOpenRows()
        case .signal, .control, .keyboard: resume("\(again)\(retry) continues")
        case .deadline:
            add(
                "\(noRepeat)\(again)\(retry) continues without --deadline",
                resuming?.withoutDeadline)
        case .gaveUp(let trouble), .brokenServer(let trouble): afterGivingUp(trouble)
        case .noResponse(_, let last): afterGivingUp(last)
        case .canaryWithoutResponses, .failed: afterGivingUp(nil)
        case .refused(let refusal): afterRefusal(refusal)
        case .heldBack(_, let refusal): afterRefusal(refusal)
        case .onlyBadTokens(let refusal): afterStrangeTokens(refusal, of: .firstRows)
        case .allRefused(_, let refusal): afterWholePart(refusal)
        case .tooManyBadTokens:
            let options =
                circumstances.isBinary ? "--certificate, --endpoint" : "--environment"
            export(
                "check \(options) and the source of the list, or raise --max-bad-tokens; see which "
                    + "rows have bad tokens", ["--reason", "BadDeviceToken"])
            liftGuard("max-bad-tokens", "if the list is right as it is")
        case .topicsRefused(_, let refusal): afterRefusedTopics(refusal)
        case .tooManyInvalid:
            export(
                "see which rows are invalid and why, or raise --max-invalid",
                ["--state", "invalid"])
            // Without this guard, a campaign whose rows are all settled is complete.
            let goal =
                circumstances.hasRemaining
                ? "continue without this guard" : "record the campaign as complete"
            resume("if the list is right as it is, \(goal)") { $0.with("max-invalid", "100") }
        case .canaryRefused(let count, _) where circumstances.isForeign(canary: count):
            afterForeignCanary()
        case .canaryRefused:
            export(
                "see why, or raise --canary-max-rejected",
                ["--state", "rejected", "--state", "invalid"])
            liftGuard("canary-max-rejected", "if these refusals are expected")
        case .expiredToken(isSupplied: true):
            resume(
                "find out why the command prints an old token, or put a new one into the file; if the "
                    + "token is younger than an hour, check the clock of the machine that made it; "
                    + "then \(again) continues")
        case .expiredToken(isSupplied: false):
            resume("check the clock of this machine, then \(again) continues")
        case .signingFailed: resume("check --auth-key, then \(again) continues")
        case .ledgerFailed(let detail): afterFailedDisk(detail)
        case .ledgerGone:
            resume("put the missing files back, then \(again) continues")
        case .superseded: resume("if rows remain when the newer attempt ends, \(again) sends them")
        case .listFailed, .listFaulty, .listChanged:
            resume("once the list is right, \(again) continues")
        }
    }

    /// Advice for an invalid list from which nothing was sent. In this case, there is no ledger to
    /// inspect.
    package init(wrongList cause: StopCause, _ circumstances: Circumstances) {
        self.circumstances = circumstances
        var isFaulty = false
        if case .listFaulty = cause { isFaulty = true }
        add(
            isFaulty
                ? "check the list once it is corrected" : "check the list, or raise --max-invalid",
            circumstances.command?.tokensCheck)
    }

    /// Advice after a run without a recorded cause: the run was killed, or version 0.1.0 wrote its
    /// ledger.
    ///
    /// - Parameter message: Message that the run recorded at its end.
    init(outcome: String?, message: String?, _ circumstances: Circumstances) {
        self.circumstances = circumstances
        guard !circumstances.isBroadcast else {
            add(
                "start the broadcast again with the same --ledger; if it may have been sent, only "
                    + "--retry unknown sends it again", nil)
            return
        }
        guard outcome == Summary.Outcome.aborted.rawValue else {
            resume(
                outcome == nil
                    ? "the latest run did not record its end, because it was killed or "
                        + "its disk was full: once there is space, run the same "
                        + "command line with \(again) to continue"
                    : "to continue where it ended, run the same command line with \(again)")
            return
        }
        // What aborted this run would abort the next one, too.
        export(
            "first fix what the run reported at its end"
                + (message.map { " (\($0))" } ?? "") + "; see which rows were refused",
            ["--state", "rejected"])
    }

    /// First step, as the end of the run's last line; nil if there is no step.
    package var lastLine: String? {
        steps.first.map { step in step.text + (step.command.map { ": \($0)" } ?? "") }
    }

    // MARK: Steps

    mutating func add(_ text: String, _ command: RunCommand?) {
        assert(
            text.last.map { !".:;".contains($0) } ?? false,
            "a step's command continues its sentence")
        let withheld = command?.withheldText.map { " (\($0))" } ?? ""
        steps.append(Step(text: text + withheld, command: command?.text()))
    }

    /// Command line that resumes the run. If the ledger was moved, or is read under another path,
    /// the line names its current path.
    private var resuming: RunCommand? {
        circumstances.command.map { command in
            let ledger = circumstances.ledger
            // The date of a night names the ledger.
            let isNamed = command.nightDate != nil || command.value("ledger") == ledger
            let same = (isNamed ? command : command.with("ledger", ledger)).resuming
            return reopened.map { same.with("retry", $0) } ?? same
        }
    }

    /// Value of the run's `--retry` if this value names a state in which rows may still be open;
    /// otherwise nil. A resumed run without `--retry` would not send these rows.
    private var reopened: String? {
        guard let states = circumstances.command?.value("retry") else { return nil }
        let names = states.split(separator: ",")
        let isOpen =
            names.contains { $0 == RowState.unknown.name } && circumstances.hasDoubt
            || circumstances.openStates.contains { state in names.contains { $0 == state.name } }
        return isOpen ? states : nil
    }

    /// The text to append to `again`: a space and the option `--retry` with its value. Empty if the
    /// option is not needed.
    private var retry: String { reopened.map { " --retry \($0)" } ?? "" }

    /// Option with which the same command line continues the campaign.
    var again: String {
        circumstances.command?.nightDate.map { "--date \($0)" } ?? "--resume"
    }

    /// Whether the run is one of `night`.
    var isNight: Bool { circumstances.command?.nightDate != nil }

    /// Text against a repeat of a night whose deadline has passed; empty for other commands. Without
    /// `--date`, the repeats end by beginning the next night.
    private var noRepeat: String {
        isNight
            ? "do not repeat the same command, which sends no more rows and later begins the next "
                + "night; "
            : ""
    }

    /// Text that names what the campaign needs to begin again with other options. A night needs
    /// another `--name`, because the path of its ledger consists of its name and date. The new
    /// campaign must leave out devices that this one has reached.
    var newLedger: String {
        let name = isNight ? "a night under another --name" : "a new ledger"
        return switch circumstances.reachedCount {
        case 0: name
        case 1: "\(name) (with --suppress for the device that may have got this campaign)"
        case let count:
            "\(name) (with --suppress for the \(grouped(count)) devices that may have got this "
                + "campaign)"
        }
    }

    mutating func resume(
        _ text: String, _ change: (RunCommand) -> RunCommand = { $0 }
    ) {
        add(text, resuming.map(change))
    }

    /// Adds a step that continues without the guard of an option. A run without remaining rows has
    /// nothing to continue.
    private mutating func liftGuard(_ option: String, _ condition: String) {
        guard circumstances.hasRemaining else { return }
        resume("\(condition), continue without this guard") { $0.with(option, "100") }
    }

    /// Options that decide of which app and environment device tokens must be. The certificate of a
    /// legacy gateway's client names both.
    var bindingOptions: String {
        circumstances.isBinary ? "--certificate and --endpoint" : "--environment and --topic"
    }

    mutating func doctor(_ text: String, _ change: (RunCommand) -> RunCommand = { $0 }) {
        // `doctor` does not support legacy gateways.
        guard !circumstances.isBinary else { return add(text, nil) }
        guard circumstances.hasRowTopics else {
            return add(text, circumstances.command.map { change($0.doctor) })
        }
        // `doctor` has no rows that name topics.
        let command = circumstances.firstTopic.flatMap {
            circumstances.command?.doctor.with("topic", $0)
        }
        add(text, command.map(change))
    }

    mutating func export(_ text: String, _ options: [String]) {
        let command =
            circumstances.command ?? RunCommand(program: "broadside", arguments: [], directory: "")
        add(
            text, command.calling(["ledger", "export", "--ledger", circumstances.ledger] + options))
    }

    private mutating func retryOpenRows() {
        guard !circumstances.openStates.isEmpty else { return }
        let names = circumstances.openStates.map(\.name).joined(separator: ",")
        guard !circumstances.isBroadcast else {
            add("start the broadcast again with --retry \(names) to send it again", nil)
            return
        }
        let doubt =
            circumstances.openStates.contains(.unknown)
            ? ", although unknown rows may have arrived already" : ""
        add(
            "\(again) --retry \(names) sends them again\(doubt)",
            resuming?.with("retry", names))
    }

    /// Adds a step for a failure to write to the ledger's disk.
    private mutating func afterFailedDisk(_ detail: String) {
        func isCaused(by numbers: Int32...) -> Bool {
            numbers.contains { detail.hasSuffix(describe(errno: $0)) }
        }
        if isCaused(by: ENOSPC, EDQUOT) {
            resume("free some space on the ledger's disk, then \(again)\(retry) continues")
        } else if isCaused(by: EFBIG) {
            resume(
                "raise this process's limit on the size of a file (ulimit -f), then "
                    + "\(again)\(retry) continues")
        } else {
            resume("once the ledger's disk accepts data, \(again)\(retry) continues")
        }
    }

    // MARK: Giving up

    private mutating func afterGivingUp(_ trouble: ConnectionTrouble?) {
        guard !circumstances.wasAnswered else { return resume("\(again)\(retry) continues") }
        switch trouble?.kind ?? .silent {
        case .resolve:
            let option =
                circumstances.hasProxy
                ? "--proxy and" : circumstances.hasEndpoint ? "--endpoint and" : ""
            investigate(
                "check \(option)\(option.isEmpty ? "" : " ")the name servers of this machine "
                    + "(/etc/resolv.conf);")
        case .connect where circumstances.hasProxy, .proxy:
            investigate("check --proxy: its host and port, and what the proxy allows;")
        case .connect:
            investigate(
                circumstances.hasEndpoint
                    ? "check --endpoint, and that a server listens there;"
                    : "does a firewall let --port through, or is a --proxy needed?")
        case .tls where trouble?.isWithoutHTTP2 == true && circumstances.legacyHint != nil:
            add(circumstances.legacyHint ?? "", nil)
        case .tls, .protocol:
            investigate("check --endpoint, --ca-file and any proxy in between;")
        case .silent, .lost: investigate(nil)
        case .refused, .longWait, .tokenUpdates, .other:
            if circumstances.isBinary { investigate(nil) } else { doctor("doctor shows more") }
        }
        guard circumstances.hasLedger else {
            add(
                "nothing was sent, and no ledger is left: fix the cause, then begin again",
                circumstances.command)
            return
        }
        resume("nothing was accepted or refused: fix the cause, then \(again) continues")
    }

    /// Adds a step about failing connections, with the `doctor` command if `doctor` supports the
    /// protocol.
    private mutating func investigate(_ check: String?) {
        let hint = circumstances.proxyHint.map { "\($0);" }
        guard circumstances.isBinary else {
            doctor([check, hint, "doctor shows more"].compactMap { $0 }.joined(separator: " "))
            return
        }
        let checks = [check ?? "check \(bindingOptions);", hint].compactMap { $0 }
        let text = checks.joined(separator: " ")
        add(text.last == ";" ? String(text.dropLast()) : text, nil)
    }
}
