import BroadsideTestSupport
import Foundation
import Testing

/// Every cause for which a run can end, provoked with the command: what the ledger keeps of it, exit code,
/// last line and report agree, the advised command line does what it says, and once the cause is gone
/// the advised `--resume` leaves nothing open and sends nothing twice.
@Suite(.timeLimit(.minutes(60)))
struct AdviceCauseTests: AdviceReading {
    /// A run that ended, and what is to come of it.
    struct Ending {
        var run: Finished
        /// Of the last line.
        var says: String
        var exitCode: Int32
        /// How the first command line that is advised ends as long as nothing is put right, and what it
        /// says; nil: it continues the run, and is looked at once that is done.
        var looks: (exitCode: Int32, finds: String)?
        /// Puts right what was wrong; the advised command line with what changes in it.
        var fix: (String) throws -> String = { $0 }
        /// How the advised `--resume` ends then; nil: none is advised.
        var resumed: Int32? = 0
        /// The page of a run that left no ledger, as nothing was sent.
        var page: String?
    }

    /// What a case works with; servers live as long as it does.
    final class Scene {
        let campaign: Campaign
        var server: LocalAPNs?
        var others: [RecordingServer] = []
        var silent: SilentPort?

        init(rows: Int) throws { campaign = try Campaign(rows: rows) }

        var directory: TemporaryDirectory { campaign.directory }

        func local(_ more: [String] = [], clock: String? = nil) throws -> String {
            let server = try LocalAPNs(more + ["--seed", "3"], clock: clock)
            self.server = server
            return server.endpoint
        }

        func hostile(_ behaviour: String, _ more: [String] = []) throws -> String {
            let server = try RecordingServer(behaviour, more, script: "hostile.py")
            others.append(server)
            return server.endpoint
        }

        /// Another server, which is well, in the place of one that a command line names. It has time for its responses.
        func moved(from endpoint: String) -> (String) throws -> String {
            { command in
                command.replacingOccurrences(of: endpoint, with: try self.local())
                    .replacingOccurrences(of: "--give-up-after 2s", with: "--give-up-after 60s")
            }
        }
    }

    @Test(arguments: AdviceCause.allCases)
    func `The stop advice for each cause leads to a finished campaign`(cause: AdviceCause) throws {
        let rows = [
            AdviceCause.complete: 200, .heldBack: 20, .allRefused: 3, .canaryWithoutResponses: 300,
            .tooManyBadTokens: 18_000, .tooManyInvalid: 12_000, .ledgerFailed: 20_000,
            .listFailed: 6_000, .listFaulty: 60_000,
        ]
        let scene = try Scene(rows: rows[cause] ?? 2000)
        let ending = try provoke(cause, scene)
        let campaign = scene.campaign
        if let page = ending.page { return try expectNothingLeft(ending, scene, page) }
        let command = try advised(
            ending.run, campaign, exitCode: ending.exitCode, says: ending.says)
        try expectKept(cause, campaign)
        let before = try campaign.statistics()
        if let looks = ending.looks {
            #expect(!command.contains("--resume"), "\(command)")
            let looked = try paste(command, campaign)
            #expect(looked.exitCode == looks.exitCode, "\(command)\n\(looked.errors)")
            #expect((looked.output + looked.errors).contains(looks.finds), "\(looked)")
            // A look changes nothing.
            #expect(try campaign.statistics() == before)
        } else {
            #expect(command.contains("--resume"), "\(command)")
        }
        let resume = commands(try report(campaign)).first { $0.contains("--resume") }
        guard let code = ending.resumed else {
            #expect(resume == nil, "\(resume ?? "")")
            return
        }
        let fixed = try ending.fix(try #require(resume))
        let finished = try paste(fixed, campaign)
        #expect(finished.exitCode == code, "\(fixed)\n\(finished.errors)")
        let after = try campaign.statistics()
        #expect(after.remaining == 0 && after.outcome == "complete", "\(after)")
        #expect(after.unknown == 0 || code == 6, "\(after)")
        try expectOnce(scene, retries: cause == .complete)
    }

    /// A server that was not reached before anything was sent leaves no ledger: the advised command line,
    /// and so the corrected one, begins again.
    private func expectNothingLeft(_ ending: Ending, _ scene: Scene, _ page: String) throws {
        let campaign = scene.campaign
        let looked = try paste(
            try advised(
                ending.run, campaign, exitCode: ending.exitCode, says: ending.says, page: page),
            campaign)
        #expect(looked.exitCode == ending.looks?.exitCode, "\(looked.errors)")
        #expect(!FileManager.default.fileExists(atPath: campaign.ledger))
        let begins = try ending.fix(try #require(commands(page).dropFirst().first))
        #expect(!begins.contains("--resume"), "\(begins)")
        let finished = try paste(begins, campaign)
        #expect(finished.exitCode == ending.resumed, "\(begins)\n\(finished.errors)")
        #expect(try campaign.statistics().outcome == "complete")
        try expectOnce(scene, retries: false)
    }

    /// The ledger keeps the cause, so that a later reader gives the same advice.
    private func expectKept(_ cause: AdviceCause, _ campaign: Campaign) throws {
        let kept = try AdviceCause(keptIn: campaign.ledger)
        // A ledger that cannot be written keeps none, and is read like that of a run that was killed.
        // What a newer attempt took over keeps how that one ended.
        let expected: AdviceCause? =
            switch cause {
            case .ledgerFailed, .ledgerGone: nil
            case .superseded: .signal
            default: cause
            }
        #expect(kept == expected, "\(String(describing: kept))")
    }

    /// No server has taken a token twice. One that refuses does not take it.
    private func expectOnce(_ scene: Scene, retries: Bool) throws {
        var taken: [String] = []
        for server in scene.others {
            taken += try server.answers().filter { $0.action == "taken" }
                .compactMap { $0.path.map { String($0.dropFirst("/3/device/".count)) } }
        }
        if let server = scene.server {
            taken += try server.finish().filter { $0[5] == "200" }.map { $0[4] }
        }
        #expect(retries || Set(taken).count == taken.count, "\(taken.count)")
    }

    // MARK: Causes

    private func provoke(_ cause: AdviceCause, _ scene: Scene) throws -> Ending {
        switch cause {
        case .complete: try lostRows(scene)
        case .signal: try interrupted(scene, "stopped by a signal") { $0.send(signal: SIGTERM) }
        case .control:
            try interrupted(scene, "stopped by broadside control") { _ in
                let words = ["control", "\(scene.directory.path)/socket", "stop"]
                let stopped = try Broadside.run(words, in: scene.directory)
                #expect(stopped.exitCode == 0, "\(stopped.errors)")
            }
        case .deadline: try late(scene)
        case .gaveUp, .noResponse, .brokenServer, .canaryWithoutResponses:
            try unanswered(cause, scene)
        case .refused, .heldBack, .onlyBadTokens, .allRefused: try refused(cause, scene)
        case .topicsRefused: try refusedTopic(scene)
        case .tooManyBadTokens, .tooManyInvalid, .canaryRefused: try guarded(cause, scene)
        case .expiredToken, .expiredSuppliedToken: try expired(cause, scene)
        case .signingFailed, .failed: try failing(cause, scene)
        case .ledgerFailed: try fullDisk(scene)
        case .ledgerGone: try movedLedger(scene)
        case .superseded: try superseded(scene)
        case .listFailed, .listChanged: try otherList(cause, scene)
        case .listFaulty: try faultyList(scene)
        }
    }

    /// A connection that breaks off after 20 responses: its rows are unknown, the others go through.
    private func lostRows(_ scene: Scene) throws -> Ending {
        let endpoint = try scene.hostile("cut", ["--hostile", "1", "--after", "20"])
        // With a second connection, all rows might go over that one before this one is open.
        return Ending(
            run: try scene.campaign.send(to: endpoint, ["--connections", "1"]),
            says: "--retry unknown", exitCode: 6)
    }

    /// 2,000 rows take 40 seconds: what a test does after the first response comes before the last one.
    private static let slow = ["--rate", "50"]

    /// The advised command line, which sends the rest soon.
    private static func hurried(_ command: String) -> String {
        command.replacingOccurrences(of: "--rate 50", with: "--rate 1000")
    }

    private func interrupted(
        _ scene: Scene, _ says: String, _ more: [String] = [],
        by interrupt: (Subprocess) throws -> Void
    ) throws -> Ending {
        let process = try Broadside.start(
            scene.campaign.arguments(
                to: try scene.local(),
                Self.slow + ["--control", "\(scene.directory.path)/socket"] + more),
            in: scene.directory)
        try process.wait { (try? scene.campaign.statistics().accepted) ?? 0 > 0 }
        try interrupt(process)
        return Ending(run: try process.wait(), says: says, exitCode: 3, fix: Self.hurried)
    }

    /// The deadline passes in the middle of the run.
    private func late(_ scene: Scene) throws -> Ending {
        try interrupted(scene, "the deadline has passed", ["--deadline", "10s"]) { _ in }
    }

    private func unanswered(_ cause: AdviceCause, _ scene: Scene) throws -> Ending {
        let endpoint: String
        var more = ["--give-up-after", "2s"]
        var (says, resumed): (String, Int32) = ("gave up on", 0)
        switch cause {
        case .gaveUp:
            let server = try RecordingServer(identity: scene.campaign.authority.expired)
            scene.others.append(server)
            endpoint = server.endpoint
        case .noResponse:
            let silent = try SilentPort()
            scene.silent = silent
            endpoint = "127.0.0.1:\(silent.port)"
        case .brokenServer:
            endpoint = try scene.hostile("hpack-garbage")
            more = ["--give-up-after", "60s"]
            (says, resumed) = ("one connection after another breaks", 6)
        default:
            endpoint = try scene.hostile("rst-each")
            more = ["--canary", "10"]
            (says, resumed) = ("too few of the canary's rows got a response", 6)
        }
        let report = "\(scene.directory.path)/report.html"
        let run = try scene.campaign.send(to: endpoint, more + ["--report", report])
        let isReached = cause == .brokenServer || cause == .canaryWithoutResponses
        return Ending(
            run: run, says: says, exitCode: 1, looks: (1, "endpoint"),
            fix: scene.moved(from: endpoint), resumed: resumed,
            page: isReached ? nil : try String(contentsOfFile: report, encoding: .utf8))
    }

    private func refused(_ cause: AdviceCause, _ scene: Scene) throws -> Ending {
        if cause == .onlyBadTokens || cause == .allRefused {
            let endpoint = try scene.local(["--bad-token", "1"])
            let part = ["--part", "1/2", "--campaign-id", "0123456789abcdef"]
            return Ending(
                run: try scene.campaign.send(to: endpoint, cause == .allRefused ? part : []),
                says: cause == .allRefused
                    ? "every row of this part that was sent, 3 in all: 400 BadDeviceToken"
                    : "400 BadDeviceToken",
                exitCode: 4, looks: (0, "rejected,400,BadDeviceToken"), resumed: nil)
        }
        let endpoint = try scene.local()
        return Ending(
            run: try scene.campaign.send(to: endpoint, ["--key-id", "ZZZZZZZZZZ"]),
            says: cause == .refused
                ? "refuses one request after another: 403 InvalidProviderToken"
                : "rows were refused because of the credential",
            exitCode: 4, looks: (4, "InvalidProviderToken"), resumed: nil)
    }

    /// Each third row names a topic that the key is not for.
    private func refusedTopic(_ scene: Scene) throws -> Ending {
        let campaign = scene.campaign
        let rows = (0..<300).map { row in
            "\(campaign.tokens.token(row)),\(row % 3 == 0 ? "com.example.third" : Campaign.topic)\n"
        }
        let list = try campaign.directory.write("token,app\n" + rows.joined(), to: "apps.csv")
        let endpoint = try scene.local()
        let other = try RecordingServer("topics", script: "topics.py")
        scene.others.append(other)
        return Ending(
            run: try campaign.send(to: endpoint, ["--tokens", list, "--topic", "{{app}}"]),
            says: "com.example.third (one refusal after another: 400 TopicDisallowed)",
            exitCode: 4, looks: (0, "remaining"),
            fix: { $0.replacingOccurrences(of: endpoint, with: other.endpoint) })
    }

    private func guarded(_ cause: AdviceCause, _ scene: Scene) throws -> Ending {
        let campaign = scene.campaign
        switch cause {
        case .tooManyBadTokens:
            return Ending(
                run: try campaign.send(to: try scene.local(["--bad-token", "0.6"])),
                says: "of the last 10,000 responses are BadDeviceToken", exitCode: 4,
                looks: (0, "rejected,400,BadDeviceToken"))
        case .tooManyInvalid:
            let tokens = (0..<12_000).map { $0 < 9000 ? campaign.tokens.token($0) : "no token" }
            try campaign.directory.write(tokens.joined(separator: "\n"), to: "tokens.txt")
            return Ending(
                run: try campaign.send(to: try scene.local()),
                says: "2,000 of the first 11,000 rows are invalid", exitCode: 4,
                looks: (0, "invalid,,MalformedToken"))
        default:
            return Ending(
                run: try campaign.send(
                    to: try scene.local(["--bad-token", "0.5"]), ["--canary", "40"]),
                says: "of the canary's 40 rows are refused", exitCode: 4,
                looks: (0, "rejected,400,BadDeviceToken"))
        }
    }

    /// Three connections call a token expired that was made just now, or one that was made elsewhere.
    private func expired(_ cause: AdviceCause, _ scene: Scene) throws -> Ending {
        let campaign = scene.campaign
        let isSupplied = cause == .expiredSuppliedToken
        let file = "\(scene.directory.path)/token"
        func write(_ age: Double) throws {
            let time = Int(Date().timeIntervalSince1970 - age)
            let token = try campaign.authority.providerToken(issuedAt: time, in: scene.directory)
            try scene.directory.write(token, to: "token")
        }
        if isSupplied { try write(7200) }
        let endpoint = try scene.local(clock: isSupplied ? nil : "+2h")
        let sent = try Broadside.run(
            campaign.arguments(
                to: endpoint, isSupplied ? ["--auth-token-file", file] : [],
                without: isSupplied ? ["auth-key", "key-id", "team-id"] : []),
            in: scene.directory)
        return Ending(
            run: sent,
            says: isSupplied ? "--auth-token-file as expired" : "check the clock of this machine",
            exitCode: 4,
            fix: isSupplied
                ? { command in
                    try write(0)
                    return command
                } : scene.moved(from: endpoint))
    }

    /// The ledger is moved away while the run goes on, and put back after its end.
    private func movedLedger(_ scene: Scene) throws -> Ending {
        let campaign = scene.campaign
        let words = campaign.arguments(to: try scene.local(), Self.slow)
        let process = try Broadside.start(words, in: scene.directory)
        try process.wait { (try? campaign.statistics().accepted) ?? 0 > 0 }
        let files = FileManager.default
        try files.moveItem(atPath: campaign.ledger, toPath: campaign.ledger + "-elsewhere")
        let run = try process.wait()
        try files.moveItem(atPath: campaign.ledger + "-elsewhere", toPath: campaign.ledger)
        #expect(
            run.errors.contains("put the missing files back, then --resume continues"),
            "\(run.errors)")
        return Ending(
            run: run, says: "the ledger, or a segment of it, was removed or moved", exitCode: 5,
            fix: Self.hurried)
    }

    /// A newer attempt takes the ledger over, as if the lock was lost, and is stopped.
    private func superseded(_ scene: Scene) throws -> Ending {
        let campaign = scene.campaign
        let words = campaign.arguments(to: try scene.local(), Self.slow)
        let older = try Broadside.start(words, in: scene.directory)
        try older.wait { (try? campaign.statistics().accepted) ?? 0 > 0 }
        try FileManager.default.removeItem(atPath: "\(campaign.ledger)/lock")
        let newer = try Broadside.start(words + ["--resume"], in: scene.directory)
        let run = try older.wait()
        newer.send(signal: SIGTERM)
        #expect(try newer.wait().exitCode == 3)
        // What the older one had in hand is unknown.
        return Ending(
            run: run, says: "a newer attempt has taken over this ledger", exitCode: 7,
            fix: Self.hurried, resumed: 6)
    }

    /// A file system with no room, as `ulimit -f` makes one.
    private func fullDisk(_ scene: Scene) throws -> Ending {
        let words = scene.campaign.arguments(to: try scene.local())
        let sent = try Subprocess(
            "bash",
            ["-c", "trap '' XFSZ; ulimit -f 64; exec \"$@\"", "bash", Broadside.path()] + words,
            in: scene.directory
        ).wait()
        // What was in flight when the disk was full is in doubt, and then unknown.
        return Ending(run: sent, says: "the ledger can't be written", exitCode: 5, resumed: 6)
    }

    private func otherList(_ cause: AdviceCause, _ scene: Scene) throws -> Ending {
        let campaign = scene.campaign
        let list =
            cause == .listFailed
            ? try Packing.gzip.write(
                campaign.tokens.wideList(), to: "list.csv", in: scene.directory)
            : campaign.list
        let whole = try Data(contentsOf: URL(filePath: list))
        if cause == .listFailed {
            try whole.prefix(whole.count / 2).write(to: URL(filePath: list))
        }
        let process = try Broadside.start(
            campaign.arguments(
                to: try scene.local(),
                ["--tokens", list] + (cause == .listChanged ? Self.slow : [])),
            in: scene.directory)
        if cause == .listChanged {
            try process.wait { (try? campaign.statistics().accepted) ?? 0 > 0 }
            #expect(truncate(list, off_t(whole.count / 2)) == 0)
        }
        return Ending(
            run: try process.wait(),
            says: cause == .listFailed ? "list.csv.gz" : "changed while it was read", exitCode: 5,
            fix: { command in
                try whole.write(to: URL(filePath: list))
                return Self.hurried(command)
            })
    }

    /// A quote far behind in the list swallows the rows that follow; a space in its place lets the size
    /// be, so that the rest goes out.
    private func faultyList(_ scene: Scene) throws -> Ending {
        var rows = scene.campaign.tokens.list().split(separator: 0x0a).map { Array($0) + [0x2c] }
        rows[50_000].append(UInt8(ascii: "\""))
        let text = Array("token,name\n".utf8) + rows.flatMap { $0 + Array("Bob\n".utf8) }
        let list = try scene.directory.write(text, to: "list.csv")
        let sent = try scene.campaign.send(to: try scene.local(), ["--tokens", list])
        return Ending(
            run: sent, says: "line 50002 opens a quote", exitCode: 4,
            fix: { command in
                let blank = text.map { $0 == UInt8(ascii: "\"") ? 0x20 : $0 }
                try Data(blank).write(to: URL(filePath: list))
                return command
            })
    }

    /// Calls fail that nobody can make fail from outside: `Tests/Shims/fail-calls.c`.
    private func failing(_ cause: AdviceCause, _ scene: Scene) throws -> Ending {
        let campaign = scene.campaign
        let library = try Shim.compile("fail-calls", in: scene.directory)
        let word = "\(scene.directory.path)/fail"
        var environment = ["LD_PRELOAD": library, "FAIL_FILE": word]
        if cause == .signingFailed {
            let offset = try scene.directory.write("+0", to: "offset")
            environment.merge(try FakeTime.following(offset)) { "\($1) \($0)" }
        }
        let process = try Broadside.start(
            campaign.arguments(
                to: try scene.local(), Self.slow + ["--reactors", "1"]),
            in: scene.directory, environment: environment)
        try process.wait { (try? campaign.statistics().accepted) ?? 0 > 0 }
        try scene.directory.write(cause == .failed ? "ring" : "sign", to: "fail")
        // A new token is due, and the current one is too old to be sent.
        if cause == .signingFailed { try scene.directory.write("+51m", to: "offset") }
        let run = try process.wait()
        return cause == .failed
            ? Ending(
                run: run, says: "io_uring_enter", exitCode: 3, fix: Self.hurried, resumed: 6)
            : Ending(
                run: run, says: "the signing key can't sign any more", exitCode: 4,
                fix: Self.hurried)
    }
}
