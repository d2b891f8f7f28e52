import BroadsideAPNs
import BroadsideLedgerFormat
import BroadsidePolicy
import BroadsideRows
import Testing

@testable import BroadsideObservability

/// What to do after each way in which a run ends: causes x advice, without any process.
@Suite struct StopAdviceTests {
    static let command = RunCommand(
        program: "broadside",
        arguments: [
            "send", "--tokens", "my list.txt", "--topic=com.example", "--auth-key", "it's.p8",
            "--deadline", "2h", "--ledger", "tonight",
        ], directory: RunCommand.workingDirectory)
    static let resume = """
        broadside send --tokens 'my list.txt' '--topic=com.example' --auth-key 'it'\\''s.p8' \
        --deadline 2h --ledger tonight --resume
        """

    static func advice(
        _ cause: StopCause, wasAnswered: Bool = true, hasEndpoint: Bool = false,
        open: [RowState] = [], command: RunCommand? = command
    ) -> StopAdvice {
        StopAdvice(
            cause,
            .init(
                wasAnswered: wasAnswered, hasEndpoint: hasEndpoint, environment: "production",
                isBinary: false, ledger: "tonight", command: command, openStates: open))
    }

    static func refusal(
        _ reason: Reason?, _ status: UInt16 = 403, isCredential: Bool = true
    ) -> StopCause.Refusal {
        .init(status: status, reason: reason, isCredential: isCredential)
    }

    @Test func `Rows that a retry does not send are in no advice to retry`() {
        var counts = RowCounts()
        (counts[.failed], counts[.unknown]) = (3, 2)
        var summary = Summary(campaign: 1, outcome: .complete)
        summary.take(counts, rows: 5)
        func advice() -> String? {
            var circumstances = StopAdvice.Circumstances(
                wasAnswered: true, hasEndpoint: false, environment: "production", isBinary: false,
                ledger: "tonight")
            circumstances.take(summary)
            return StopAdvice(.complete, circumstances).lastLine
        }
        #expect(summary.openRowsText == "3 rows are failed, 2 rows are unknown")
        #expect(advice()?.hasPrefix("--resume --retry failed,unknown sends") == true)
        #expect(summary.unsendableRowsText == nil)
        (summary.unsendable.erased[.failed], summary.unsendable.beyondLimit[.unknown]) = (2, 2)
        #expect(summary.openRowsText == "1 row is failed")
        #expect(advice() == "--resume --retry failed sends them again")
        #expect(OutcomeShares(summary, isInProgress: false).decisions.map(\.count) == [1])
        summary.unsendable.erased[.failed] = 3
        #expect(summary.openRowsText == nil && advice() == nil)
        #expect(OutcomeShares(summary, isInProgress: false).decisions.isEmpty)
        #expect(
            summary.unsendableRowsText
                == "--retry does not send again: 3 failed rows of erased devices, "
                + "2 unknown rows beyond --limit")
    }

    /// Causes after which the same command line sends what is left.
    @Test(
        arguments: [
            .signal, .control, .keyboard, .expiredToken(isSupplied: true),
            .expiredToken(isSupplied: false),
            .signingFailed, .ledgerFailed(detail: "full"), .superseded,
            .listFailed(detail: "cut"),
            .listFaulty(detail: "line 9"), .listChanged(detail: "grown"), .failed(detail: "ring"),
            .canaryWithoutResponses,
            .gaveUp(.init(.connect, "refused")), .noResponse(seconds: 60, last: nil),
            .brokenServer(.init(.protocol, "x")),
        ] as [StopCause])
    func `An interrupted run is advised to resume unchanged`(cause: StopCause) {
        #expect(Self.advice(cause).steps.map(\.command) == [Self.resume])
    }

    /// Causes that the same command line would meet again.
    @Test(
        arguments: [
            .refused(refusal(.topicDisallowed, 400)), .refused(refusal(.invalidProviderToken)),
            .refused(refusal(.badEnvironmentKeyInToken)), .refused(refusal(.badCertificate)),
            .refused(refusal(.badCertificateEnvironment, 0)), .refused(refusal(.forbidden)),
            .refused(refusal(.badPriority, 400, isCredential: false)),
            .refused(refusal(nil, 404, isCredential: false)),
            .heldBack(rows: 3, refusal(.topicDisallowed, 400)), .heldBack(rows: 3, nil),
            .onlyBadTokens(refusal(.badDeviceToken, 400, isCredential: false)),
            .onlyBadTokens(refusal(.deviceTokenNotForTopic, 400, isCredential: false)),
            .tooManyBadTokens, .tooManyInvalid(count: 5, rows: 9),
            .canaryRefused(count: 4, answered: 5),
        ] as [StopCause], [false, true])
    func `A refused run is never advised to resume unchanged`(cause: StopCause, hasEndpoint: Bool) {
        #expect(cause.isAbort)
        let advice = Self.advice(cause, hasEndpoint: hasEndpoint)
        #expect(!advice.steps.isEmpty)
        #expect(!advice.steps.contains { $0.command == Self.resume })
        // A command line that can be pasted comes with each.
        #expect(advice.steps.contains { $0.command != nil })
        for command in advice.steps.compactMap(\.command) where command.contains("--resume") {
            #expect(command.hasSuffix(" 100"), "only a guard may be lifted: \(command)")
        }
    }

    @Test(
        arguments: [(.key, false), (.suppliedToken, false), (.certificate, true)]
            as [(StopAdvice.CredentialKind, Bool)])
    func `The advice after BadCertificate names --certificate only if the run uses one`(
        kind: StopAdvice.CredentialKind, namesOption: Bool
    ) {
        var circumstances = StopAdvice.Circumstances(
            wasAnswered: true, hasEndpoint: false, environment: "production", isBinary: false,
            ledger: "tonight", command: Self.command)
        circumstances.credential = kind
        let advice = StopAdvice(.refused(Self.refusal(.badCertificate, 0)), circumstances)
        #expect(advice.steps[0].text.contains("--certificate") == namesOption)
        #expect(advice.steps[0].text.contains("uses no certificate") != namesOption)
    }

    @Test func `An advised command is the run's own with what has to change`() throws {
        #expect(
            Self.advice(.deadline).steps.map(\.command) == [
                Self.resume.replacing("--deadline 2h ", with: "")
            ])
        #expect(
            Self.advice(.complete, open: [.failed, .unknown]).steps.map(\.command)
                == [Self.resume + " --retry 'failed,unknown'"])
        #expect(Self.advice(.complete).steps.isEmpty)
        let doctor = "broadside doctor '--topic=com.example' --auth-key 'it'\\''s.p8'"
        #expect(
            Self.advice(.refused(Self.refusal(.invalidProviderToken))).steps[0].command == doctor)
        let unreachable = Self.advice(.gaveUp(.init(.resolve, "x")), wasAnswered: false)
        #expect(unreachable.steps.map(\.command) == [doctor, Self.resume])
        #expect(unreachable.steps[0].text.hasPrefix("check the name servers of this machine"))
        // The environment is part of the campaign: another one needs a new ledger.
        let strangers = Self.advice(
            .onlyBadTokens(Self.refusal(.badDeviceToken, 400, isCredential: false)))
        #expect(
            strangers.steps.map(\.command) == [
                """
                broadside send --tokens 'my list.txt' '--topic=com.example' --auth-key 'it'\\''s.p8' \
                --deadline 2h --ledger tonight-2 --environment development
                """
            ])
        #expect(
            strangers.steps[0].text.contains(
                "first rows are of development builds, --resume continues"))
        // No row remains, so a resume has nothing to send.
        let whole = Self.advice(
            .allRefused(rows: 3, Self.refusal(.badDeviceToken, 400, isCredential: false)))
        #expect(!whole.steps[0].text.contains("--resume"))
        let topic = Self.advice(.refused(Self.refusal(.topicDisallowed, 400)))
        #expect(topic.steps[0].text.contains("begin a new ledger"))
        #expect(topic.steps.map(\.command) == [doctor])
    }

    @Test(
        arguments: [
            ("unknown", [], true, true), ("failed,unknown", [], true, true),
            ("failed", [.failed], false, true), ("failed", [], true, false),
            ("unknown", [.failed], false, false),
        ] as [(states: String, open: [RowState], hasDoubt: Bool, isKept: Bool)], [false, true])
    func `An interrupted retry is advised to go on with --retry while its rows are open`(
        retry: (states: String, open: [RowState], hasDoubt: Bool, isKept: Bool), isNight: Bool
    ) {
        let own =
            isNight
            ? ["night", "--campaign", "c.json5", "--date", "2026-11-20"]
            : ["send", "--campaign", "c.json5", "--ledger", "tonight", "--resume"]
        let command = RunCommand(
            program: "broadside", arguments: own + ["--retry", retry.states],
            directory: RunCommand.workingDirectory)
        var circumstances = StopAdvice.Circumstances(
            wasAnswered: true, hasEndpoint: false, environment: "production", isBinary: false,
            ledger: "tonight", command: command, openStates: retry.open)
        circumstances.hasDoubt = retry.hasDoubt
        let advice = StopAdvice(.signal, circumstances).steps
        let option = isNight ? "--date 2026-11-20" : "--resume"
        #expect(
            advice.map(\.text)
                == ["\(option)\(retry.isKept ? " --retry \(retry.states)" : "") continues"])
        #expect(advice[0].command?.contains("--retry") == retry.isKept)
        #expect(advice[0].command?.contains(option) == true)
        // A run that is complete names what is open itself.
        let complete = StopAdvice(.complete, circumstances).lastLine ?? ""
        #expect(complete.ranges(of: "--retry").count <= 2, "\(complete)")
    }

    @Test(
        arguments: [
            .refused(refusal(.topicDisallowed, 400)),
            .refused(refusal(.badEnvironmentKeyInToken)),
            .refused(refusal(.badPriority, 400, isCredential: false)),
            .onlyBadTokens(refusal(.badDeviceToken, 400, isCredential: false)),
            .onlyBadTokens(refusal(.deviceTokenNotForTopic, 400, isCredential: false)),
            .allRefused(rows: 3, nil),
        ] as [StopCause])
    func `A refused night is advised to use another name, as its date names its ledger`(
        cause: StopCause
    ) {
        let command = RunCommand(
            program: "broadside",
            arguments: ["night", "--campaign", "c.json5", "--date", "2026-11-20"],
            directory: RunCommand.workingDirectory)
        let texts = Self.advice(cause, command: command).steps.map(\.text)
        #expect(texts.contains { $0.contains("a night under another --name") }, "\(texts)")
        #expect(!texts.contains { $0.contains("new ledger") }, "\(texts)")
    }

    @Test(arguments: [
        ("No space left on device", "free some space on the ledger's disk"),
        ("/srv/tonight: File too large", "(ulimit -f)"),
        ("Input/output error", "once the ledger's disk accepts data"),
    ])
    func `The advice after a failed disk depends on what the disk lacks`(
        detail: String, step: String
    ) {
        let advice = Self.advice(.ledgerFailed(detail: detail))
        #expect(advice.steps.map(\.command) == [Self.resume])
        #expect(advice.steps[0].text.contains(step), "\(advice.steps)")
    }

    @Test func `A refusing proxy leads to advice about the proxy`() {
        func text(_ kind: ConnectionTrouble.Kind, hasProxy: Bool, hint: String? = nil) -> String {
            var circumstances = StopAdvice.Circumstances(
                wasAnswered: false, hasEndpoint: true, environment: "production", isBinary: false,
                ledger: "tonight", command: Self.command)
            circumstances.hasProxy = hasProxy
            circumstances.proxyHint = hint
            return StopAdvice(.gaveUp(.init(kind, "x")), circumstances).steps[0].text
        }
        for kind in [ConnectionTrouble.Kind.connect, .proxy, .resolve] {
            let words = text(kind, hasProxy: true)
            #expect(words.contains("check --proxy") && !words.contains("--endpoint"), "\(words)")
        }
        #expect(text(.connect, hasProxy: false).hasPrefix("check --endpoint, and that a server"))
        for kind in [ConnectionTrouble.Kind.connect, .resolve, .tls, .silent, .lost] {
            let words = text(kind, hasProxy: false, hint: "HTTPS_PROXY is set")
            #expect(words.hasSuffix("HTTPS_PROXY is set; doctor shows more"), "\(words)")
        }
    }

    @Test(arguments: ["com.example.news", nil])
    func `If rows name their topics, doctor gets the first row's topic`(first: String?) {
        let command = RunCommand(
            program: "broadside",
            arguments: ["send", "--topic", "{{app}}", "--auth-key", "k.p8", "--ledger", "tonight"],
            directory: RunCommand.workingDirectory)
        var circumstances = StopAdvice.Circumstances(
            wasAnswered: true, hasEndpoint: false, environment: "production", isBinary: false,
            ledger: "tonight", command: command)
        circumstances.hasRowTopics = true
        circumstances.firstTopic = first
        let advice = StopAdvice(.refused(Self.refusal(.invalidProviderToken)), circumstances)
        #expect(
            advice.steps[0].command
                == first.map { "broadside doctor --auth-key k.p8 --topic \($0)" })
        // Earlier versions recorded this cause for the rows of a refused topic.
        let old = StopAdvice(
            .heldBack(rows: 3, Self.refusal(.topicDisallowed, 400)), circumstances)
        #expect(!old.steps.contains { $0.text.contains("new ledger") })
        #expect(
            old.steps.map(\.command) == [
                "broadside ledger export --ledger tonight --state remaining",
                "broadside send --topic '{{app}}' --auth-key k.p8 --ledger tonight --resume",
            ])
    }

    @Test(arguments: ["old", "old/", "old//", "a/old/"])
    func `An advised new ledger is beside the old one`(path: String) {
        let name = path.hasPrefix("a") ? "a/old-2" : "old-2"
        #expect(Self.command.beginningAnew(ledger: path).value("ledger") == name)
    }

    @Test(arguments: [[], ["--deadline", "1h"], ["--deadline=1h"]])
    func `An advised command replaces a campaign file's deadline`(own: [String]) {
        let command = RunCommand(
            program: "broadside",
            arguments: [
                "send", "--campaign", "c.json5", "--resume", "--retry=failed", "--must-resume",
            ] + own, directory: "/srv/a b")
        #expect(
            command.resuming.withoutDeadline.text(at: "/srv/a b")
                == "broadside send --campaign c.json5 --resume --must-resume --deadline 36500d")
        #expect(
            command.beginningAnew(ledger: "l").arguments
                == ["send", "--campaign", "c.json5"] + own + ["--ledger", "l-2"])
        #expect(
            command.doctor.text(at: "/") == "cd '/srv/a b' && broadside doctor --campaign c.json5")
    }

    @Test func `Advised commands have those options of the run that they accept`() {
        func command(_ words: String...) -> RunCommand {
            RunCommand(program: "broadside", arguments: ["send"] + words, directory: "")
        }
        let relay = command(
            "--content-length", "--endpoint", "relay:443", "--rate", "5", "--topic=a.b",
            "--content-length")
        #expect(
            relay.doctor.text()
                == "broadside doctor --content-length --endpoint relay:443 '--topic=a.b' "
                + "--content-length")
        let list = command(
            "--tokens", "list", "--format=jsonl", "--payload", "p", "--token-column",
            "device.token", "--max-invalid", "5", "--duplicates", "skip")
        #expect(
            list.tokensCheck?.text()
                == "broadside tokens check --tokens list '--format=jsonl' --token-column "
                + "device.token --max-invalid 5")
        #expect(
            command("--campaign", "c.json5", "--ledger", "l").tokensCheck?.text()
                == "broadside tokens check --campaign c.json5")
        #expect(command("--to", "00ff").tokensCheck == nil)
    }

    @Test func `A server with another success status is asked whether it is APNs`() {
        let refusal = Self.refusal(nil, 202, isCredential: false)
        let advice = Self.advice(.refused(refusal))
        #expect(advice.steps.count == 1 && advice.steps[0].text.hasPrefix("is this APNs?"))
        #expect(
            advice.steps[0].command == "broadside ledger export --ledger tonight --state unknown")
        #expect(
            StopCause.refused(refusal).message.hasPrefix(
                "the server responds to one request after another with 202"))
    }

    @Test func `Advice about an invalid provider token depends on the credential's kind`() {
        func text(_ kind: StopAdvice.CredentialKind) -> String {
            var circumstances = StopAdvice.Circumstances(
                wasAnswered: true, hasEndpoint: false, environment: "production", isBinary: false,
                ledger: "tonight", command: Self.command)
            circumstances.credential = kind
            let cause = StopCause.refused(Self.refusal(.invalidProviderToken))
            return StopAdvice(cause, circumstances).steps[0].text
        }
        #expect(text(.key).contains("--key-id and --team-id") && text(.key).contains("clock"))
        #expect(text(.suppliedToken).contains("check the program that makes the provider token"))
        #expect(text(.certificate).contains("APNs saw no certificate"))
        for kind in [StopAdvice.CredentialKind.suppliedToken, .certificate] {
            #expect(!text(kind).contains("--key-id"))
        }
    }

    @Test func `A provider token that did not arrive is not blamed on the credential`() {
        let text = Self.advice(.refused(Self.refusal(.missingProviderToken))).steps[0].text
        #expect(text.contains("removes the header authorization"), "\(text)")
        #expect(!text.contains("use a credential"), "\(text)")
    }

    @Test(arguments: [RowState.failed, .unknown])
    func `Advice about a broadcast names only options that broadcast has`(state: RowState) {
        var circumstances = StopAdvice.Circumstances(
            wasAnswered: true, hasEndpoint: false, environment: "production", isBinary: false,
            ledger: "goal", openStates: [state])
        circumstances.isBroadcast = true
        for (advice, option) in [
            (StopAdvice(.complete, circumstances), "--retry \(state.name)"),
            (StopAdvice(outcome: nil, message: nil, circumstances), "--retry unknown"),
        ] {
            #expect(advice.steps.count == 1 && advice.steps[0].text.contains(option))
            #expect(!advice.steps[0].text.contains("--resume"))
        }
    }

    @Test(arguments: [302, 401, 403, 404] as [UInt16])
    func `A response that APNs never sends is advised to resume at the right endpoint`(
        status: UInt16
    ) {
        let refusal = Self.refusal(nil, status)
        for cause: StopCause in [.refused(refusal), .heldBack(rows: 3, refusal)] {
            let advice = Self.advice(cause, hasEndpoint: true)
            #expect(advice.steps[0].text.hasPrefix("is this APNs? check --endpoint"))
            #expect(advice.steps[0].command?.hasPrefix("broadside doctor") == true)
            #expect(advice.steps.count == 2 && advice.steps[1].text.contains("--resume"))
            #expect(!advice.steps.contains { $0.text.contains("new ledger") })
            #expect(cause.message.contains("\(status) without a known reason"))
            #expect(!cause.message.contains("credential"))
        }
        var named = Self.refusal(nil, status)
        named.unknownReason = "Key\u{202e}Revoked"
        #expect(named.isFromOtherServer == (status != 403))
        #expect(named.text == "\(status) Key\\u{202e}Revoked")
        #expect(!Self.refusal(.forbidden).isFromOtherServer)
        #expect(!Self.refusal(nil, 0).isFromOtherServer)
        #expect(!Self.refusal(.topicDisallowed, 400).isFromOtherServer)
        #expect(!Self.refusal(nil, 404, isCredential: false).isFromOtherServer)
    }

    @Test(
        arguments: [
            (refusal(nil, 404), "is this APNs? check --endpoint", "broadside doctor", "the server"),
            (
                refusal(.topicDisallowed, 400), "use a credential that is for these topics",
                "--state remaining", "APNs"
            ),
            (
                refusal(.forbidden), "use a credential that is for these topics",
                "--state remaining", "APNs"
            ),
            (
                refusal(.badTopic, 400, isCredential: false), "correct the topics of these rows",
                "--state rejected", "APNs"
            ),
        ] as [(StopCause.Refusal, String, String, String)])
    func `The advice after refused topics depends on whether their rows remain`(
        refusal: StopCause.Refusal, text: String, command: String, subject: String
    ) {
        let cause = StopCause.topicsRefused(detail: "com.example.a", refusal)
        let advice = Self.advice(cause, hasEndpoint: true)
        #expect(advice.steps[0].text.hasPrefix(text), "\(advice.steps)")
        #expect(advice.steps[0].command?.contains(command) == true, "\(advice.steps)")
        #expect(advice.steps.last?.text.contains("--resume") == true)
        #expect(
            advice.steps.contains { $0.text.contains("new ledger") } == !refusal.isCredential)
        // A corrected list and a resume would both send the remaining rows.
        #expect(
            refusal.isCredential
                || !advice.steps.contains { $0.command?.contains("--resume") == true })
        #expect(cause.message.hasPrefix("\(subject) refuses some of the topics"))
    }

    @Test(arguments: [0, 1, 1_200] as [UInt64])
    func `Advice to begin again leaves out the devices that were reached`(count: UInt64) {
        var circumstances = StopAdvice.Circumstances(
            wasAnswered: true, hasEndpoint: true, environment: "production", isBinary: false,
            ledger: "tonight", command: Self.command)
        circumstances.reachedCount = count
        let devices = [0: "", 1: "the device", 1_200: "the 1,200 devices"][count]!
        for refusal in [
            Self.refusal(.badExpirationDate, 400, isCredential: false),
            Self.refusal(.badDeviceToken, 400, isCredential: false),
        ] {
            let advice = StopAdvice(.refused(refusal), circumstances)
            #expect(
                advice.steps[0].text.contains("with --suppress for \(devices) that may have got")
                    == (count > 0), "\(advice.steps)")
        }
        // The server's requirement can be met by a resume, which sends no row again.
        let advice = StopAdvice(
            .refused(Self.refusal(.badPath, 411, isCredential: false)), circumstances)
        let command = advice.steps[0].command ?? ""
        #expect(command.hasSuffix(" --content-length"))
        #expect(command.contains("--ledger tonight --resume") == (count > 0), "\(command)")
    }

    @Test(arguments: [(Reason.badPriority, "priority"), (.badCollapseID, "collapse-id")])
    func `Advice about a refused header names the option of arms if arms have it`(
        reason: Reason, option: String
    ) {
        for armsHaveOwn in [false, true] {
            var circumstances = StopAdvice.Circumstances(
                wasAnswered: true, hasEndpoint: false, environment: "production", isBinary: false,
                ledger: "tonight", command: Self.command)
            circumstances.armsHavePriorities = armsHaveOwn
            circumstances.armsHaveCollapseIDs = armsHaveOwn
            let refusal = Self.refusal(reason, 400, isCredential: false)
            let text = StopAdvice(.refused(refusal), circumstances).steps[0].text
            let words = "fix --\(option)" + (armsHaveOwn ? " or --arm-\(option)," : ",")
            #expect(text.hasPrefix(words), "\(text)")
        }
    }

    @Test(arguments: [RowState.failed, .unknown])
    func `Advice to send unknown rows again says that they may have arrived`(state: RowState) {
        let line = Self.advice(.complete, open: [state]).lastLine ?? ""
        #expect(line.contains("sends them again"))
        #expect(line.contains("may have arrived already") == (state == .unknown), "\(line)")
    }

    @Test func `A run without a recorded end gets advice about what may have ended it`() {
        let advice = StopAdvice(
            outcome: nil, message: nil,
            .init(
                wasAnswered: true, hasEndpoint: false, environment: "production",
                isBinary: false, ledger: "tonight", command: Self.command))
        #expect(advice.steps.map(\.command) == [Self.resume])
        #expect(
            advice.steps[0].text.contains("was killed")
                && advice.steps[0].text.contains("its disk was full"))
    }

    @Test func `Without the run's command line the advice still says what to do`() {
        let advice = Self.advice(.signal, command: nil)
        #expect(advice.lastLine == "--resume continues")
        let old = StopAdvice(
            outcome: "aborted", message: "APNs refuses one request after the other",
            .init(
                wasAnswered: true, hasEndpoint: false, environment: "production",
                isBinary: false, ledger: "tonight"))
        #expect(old.steps.count == 1 && !old.steps[0].text.contains("--resume"))
        #expect(old.steps[0].command == "broadside ledger export --ledger tonight --state rejected")
    }
}
