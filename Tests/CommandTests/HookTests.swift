import BroadsideTestSupport
import Foundation
import Testing

/// The command of `--hook`: what it is told and when, and that it holds nothing up.
@Suite(.timeLimit(.minutes(60)))
struct HookTests {
    private let campaign: Campaign
    private let server: LocalAPNs
    private let summary: String
    private let report: String

    init() throws {
        campaign = try Campaign(rows: 400)
        server = try LocalAPNs()
        summary = "\(campaign.directory.path)/summary.json"
        report = "\(campaign.directory.path)/report.html"
    }

    private var outputs: [String] { ["--summary", summary, "--report", report] }

    private func text(_ name: String) -> String {
        (try? String(contentsOfFile: "\(campaign.directory.path)/\(name)", encoding: .utf8)) ?? ""
    }

    private func events(_ name: String = "events") throws -> [[String: Any]] {
        try text(name).split(separator: "\n").map { line in
            try #require(
                JSONSerialization.jsonObject(with: Data(line.utf8)) as? [String: Any], "\(line)")
        }
    }

    /// The option, for a command that is run in the campaign's folder.
    private func hook(_ command: String) -> [String] {
        ["--hook", "cd '\(campaign.directory.path)' && {\n\(command)\n}"]
    }

    /// Notes every moment that it is alive.
    private static let forever = "while sleep 0.2; do echo alive >> alive; done"

    /// Notes each event as a line of JSON, and which files are there.
    private static let noting = """
        tee -a lines | jq -c . >> events
        echo "$BROADSIDE_EVENT" $(test -s report.html && echo report) \
            $(test -s summary.json && echo summary) >> seen
        """

    @Test
    func
        `A run that finishes calls the hook twice, the second time with summary and report written`()
        throws
    {
        let sending = try Broadside.start(
            campaign.arguments(
                to: server.endpoint, outputs + ["--rate", "10"] + hook(Self.noting)),
            in: campaign.directory)
        // The run ends after the first call has looked for files.
        try sending.wait { text("seen").hasSuffix("\n") }
        let faster = try Broadside.run(
            ["control", "--ledger", campaign.ledger, "rate", "1000"], in: campaign.directory)
        #expect(faster.exitCode == 0, "\(faster.errors)")
        let sent = try sending.wait()
        #expect(sent.exitCode == 0, "\(sent.errors)")
        #expect(!sent.errors.contains("--hook"), "\(sent.errors)")
        let told = try events()
        #expect(told.map { $0["event"] as? String } == ["started", "finished"])
        #expect(text("seen") == "started\nfinished report summary\n")
        for event in told {
            #expect(Set(event.keys) == ["event", "summary", "ledger", "report"])
            #expect(event["ledger"] as? String == campaign.ledger)
        }
        #expect(text("lines").split(separator: "\n").count == 2, "an event is a line")
        #expect(told[0]["summary"] is NSNull && told[0]["report"] is NSNull)
        #expect(told[1]["report"] as? String == report)
        let written = try JSONSerialization.jsonObject(with: Data(text("summary.json").utf8))
        #expect(told[1]["summary"] as? NSDictionary == written as? NSDictionary)
        // A finished run that is resumed sends nothing and runs no hook.
        let again = try campaign.send(to: server.endpoint, ["--resume"] + hook(Self.noting))
        #expect(again.exitCode == 0)
        #expect(try events().count == 2)
    }

    @Test
    func
        `A run that ends with rows left calls the hook with stopped, also where nothing was reached`()
        throws
    {
        let sending = try Broadside.start(
            campaign.arguments(to: server.endpoint, ["--rate", "10"] + hook(Self.noting)),
            in: campaign.directory)
        try sending.wait { text("seen").contains("started") }
        sending.send(signal: SIGTERM)
        let stopped = try sending.wait()
        #expect(stopped.exitCode == 3, "\(stopped.errors)")
        var told = try events()
        #expect(told.map { $0["event"] as? String } == ["started", "stopped"])
        let numbers = try #require(told[1]["summary"] as? [String: Any])
        #expect(numbers["outcome"] as? String == "stopped")
        #expect(numbers["remaining"] as? Int ?? 0 > 100)
        let unreachable = try campaign.send(
            to: "127.0.0.1:1",
            ["--ledger", campaign.ledger + "2", "--give-up-after", "1s"] + hook(Self.noting))
        #expect(unreachable.exitCode == 1, "\(unreachable.errors)")
        told = try events()
        #expect(told.count == 4 && told[3]["event"] as? String == "stopped")
        #expect(told[3]["ledger"] is NSNull, "nothing was sent: there is none")
    }

    @Test
    func `A repeat after the deadline calls no hook, and once if the run before ended otherwise`()
        throws
    {
        let late = ["--deadline", "1h", "--rate", "20"] + hook(Self.noting)
        let sending = try Broadside.start(
            campaign.arguments(to: server.endpoint, late), in: campaign.directory)
        try sending.wait { text("seen").contains("started") }
        sending.send(signal: SIGTERM)
        #expect(try sending.wait().exitCode == 3)
        for _ in 0..<3 {
            let again = try campaign.send(
                to: server.endpoint, late + ["--resume"], environment: FakeTime.fixed("+7200"))
            #expect(again.exitCode == 3, "\(again.errors)")
            #expect(again.errors.contains("the deadline has passed"), "\(again.errors)")
            let told = try events().compactMap { $0["event"] as? String }
            #expect(told == ["started", "stopped", "stopped"])
        }
    }

    /// Threads can't be started once the ledger is there: `Tests/Shims/fail-calls.c`.
    @Test func `A run whose hook can't be started writes its summary`() throws {
        let library = try Shim.compile("fail-calls", in: campaign.directory)
        let sent = try Broadside.run(
            campaign.arguments(to: server.endpoint, outputs + hook(Self.noting)),
            in: campaign.directory,
            environment: [
                "LD_PRELOAD": library, "FAIL_THREADS": "\(campaign.ledger)/manifest.json",
            ])
        #expect(sent.exitCode == 1, "\(sent.errors)")
        #expect(sent.errors.contains("a thread can't be started"), "\(sent.errors)")
        let written = try JSONSerialization.jsonObject(with: Data(text("summary.json").utf8))
        let told = try #require(written as? [String: Any])
        #expect(told["outcome"] as? String == "error" && told["accepted"] as? Int == 0)
        #expect(try server.finish().isEmpty)
    }

    @Test
    func `A night's hook is told its page, which is written by then, or the one of --report`()
        throws
    {
        // A server that does not compare the provider token's time with its clock.
        let server = try RecordingServer()
        let nights = try Nights(rows: 60, endpoint: server.endpoint)
        let noting = """
            cd '\(nights.folder)' && cat >> events; ls "$(cat page)" >> seen; touch called
            """
        let page = "\(nights.ledger(1))/report.html"
        try page.write(toFile: "\(nights.folder)/page", atomically: true, encoding: .utf8)
        let sending = try nights.start(["--hook", noting, "--rate", "1"], at: (1, "23:55"))
        // The page is written after the first call has looked for it.
        try sending.wait { FileManager.default.fileExists(atPath: "\(nights.folder)/called") }
        sending.send(signal: SIGTERM)
        let cutShort = try sending.wait()
        #expect(cutShort.exitCode == 3, "\(cutShort.errors)")
        let elsewhere = "\(nights.folder)/elsewhere.html"
        let whole = try nights.run(
            ["--hook", noting, "--report", elsewhere], at: (1, "23:56"))
        #expect(whole.exitCode == 0, "\(whole.errors)")
        // Nothing is sent, and no hook runs.
        #expect(try nights.run(["--hook", noting], at: (1, "23:57")).exitCode == 0)

        let lines = try String(contentsOfFile: "\(nights.folder)/events", encoding: .utf8)
        let told = try lines.split(separator: "\n").map { line in
            try #require(
                JSONSerialization.jsonObject(with: Data(line.utf8)) as? [String: Any], "\(line)")
        }
        #expect(
            told.map { $0["event"] as? String } == ["started", "stopped", "started", "finished"])
        #expect(told.allSatisfy { $0["ledger"] as? String == nights.ledger(1) })
        #expect(told.map { $0["report"] as? String } == [nil, page, nil, elsewhere])
        #expect(told.allSatisfy { Set($0.keys) == ["event", "summary", "ledger", "report"] })
        let summaries = told.map { $0["summary"] as? [String: Any] }
        #expect(summaries[0] == nil && summaries[2] == nil)
        #expect(summaries[1]?["outcome"] as? String == "stopped")
        #expect(summaries[3]?["accepted"] as? Int == 60)
        #expect(summaries[3]?["name"] as? String == "evening")
        // There at the first end, and from then on.
        let seen = try String(contentsOfFile: "\(nights.folder)/seen", encoding: .utf8)
        #expect(seen == "\(page)\n\(page)\n\(page)\n")
    }

    @Test(arguments: [
        "exit 9", "true", "exec 0<&-; exit 9", "yes | head -c 20000000", "yes >&2 & exit 9",
        "kill -9 $$", "nothing-that-exists-here", "sleep 30 &",
    ])
    func `A hook that fails, reads nothing, prints much or leaves something behind changes nothing`(
        _ command: String
    ) throws {
        let sent = try campaign.send(
            to: server.endpoint, outputs + hook(command), limit: 60)
        #expect(sent.exitCode == 0, "\(sent.errors)")
        let fails =
            command.contains("exit 9") || command.contains("kill")
            || command.contains("nothing")
        let warnings = sent.errors.split(separator: "\n").filter {
            $0.hasPrefix("broadside: warning: --hook ")
        }
        #expect(warnings.count == (fails ? 2 : 0), "\(sent.errors)")
        #expect(sent.output.isEmpty)
        #expect(try SendSummary(json: text("summary.json")).accepted == 400)
        if command.contains("nothing") {
            #expect(warnings[0].contains("exit code 127 at started ("), "\(warnings)")
        }
    }

    @Test
    func `Sending does not wait for a hook, and its calls keep their order`() throws {
        let slow = """
            cat > /dev/null; until test -e go; do sleep 0.1; done
            sleep 1; echo $BROADSIDE_EVENT >> order
            """
        let sending = try Broadside.start(
            campaign.arguments(to: server.endpoint, outputs + hook(slow)), in: campaign.directory)
        // The first call ends only now.
        try sending.wait { (try? campaign.statistics().accepted) == 400 }
        #expect(sending.isRunning && text("order").isEmpty)
        try campaign.directory.write("", to: "go")
        let sent = try sending.wait()
        #expect(sent.exitCode == 0, "\(sent.errors)")
        // The end waits for both.
        #expect(text("order") == "started\nfinished\n")
        #expect(try SendSummary(json: text("summary.json")).accepted == 400)
    }

    @Test
    func `A hook that takes longer than its limit is killed with its group, and is a warning`()
        throws
    {
        let sent = try campaign.send(
            to: server.endpoint,
            outputs + hook("test $BROADSIDE_EVENT = started || \(Self.forever)"), limit: 120)
        #expect(sent.exitCode == 0, "\(sent.errors)")
        #expect(
            sent.errors.contains("warning: --hook took longer than 30 s and was ended at finished"),
            "\(sent.errors)")
        let last = text("alive")
        Thread.sleep(forTimeInterval: 2)
        #expect(text("alive") == last && !last.isEmpty)
    }

    @Test
    func `A signal at the end ends the hook and not the exit code`() throws {
        let mark = "\(campaign.directory.path)/alive"
        let sending = try Broadside.start(
            campaign.arguments(
                to: server.endpoint,
                outputs + hook("test $BROADSIDE_EVENT = started || \(Self.forever)")),
            in: campaign.directory)
        try sending.wait { FileManager.default.fileExists(atPath: mark) }
        sending.send(signal: SIGINT)
        let sent = try sending.wait()
        #expect(sent.exitCode == 0, "\(sent.errors)")
        #expect(sent.seconds < 20 && sent.errors.contains("--hook was ended"), "\(sent.errors)")
        let last = text("alive")
        Thread.sleep(forTimeInterval: 2)
        #expect(text("alive") == last)
    }

    @Test
    func `After a second Ctrl-C a hook gets a moment`() throws {
        let sending = try Broadside.start(
            campaign.arguments(
                to: server.endpoint,
                outputs + ["--rate", "20"]
                    + hook(
                        "echo $BROADSIDE_EVENT >> order; test $BROADSIDE_EVENT = started || sleep 60"
                    )), in: campaign.directory)
        try sending.wait { text("order").contains("started") }
        sending.send(signal: SIGINT)
        try sending.wait { text("order").contains("stopped") }
        sending.send(signal: SIGTERM)
        let sent = try sending.wait()
        #expect(sent.exitCode == 3, "\(sent.errors)")
        #expect(sent.seconds < 30)
        #expect(text("order") == "started\nstopped\n")
    }

    @Test
    func
        `A hook sees the environment without the key that came in it, and contains no ledger locked`()
        throws
    {
        let key = try String(contentsOfFile: campaign.authority.authKey, encoding: .utf8)
        let sent = try Broadside.run(
            campaign.arguments(
                to: server.endpoint,
                ["--auth-key", "env:APNS_KEY"]
                    + hook("env > environment; ls -l /proc/self/fd > open; sleep 30 &"),
                without: ["auth-key"]), in: campaign.directory,
            environment: ["APNS_KEY": key, "OTHER": "stays"])
        #expect(sent.exitCode == 0, "\(sent.errors)")
        #expect(text("environment").contains("OTHER=stays"))
        #expect(text("environment").contains("BROADSIDE_EVENT=finished"))
        for hidden in ["APNS_KEY", "PRIVATE"] { #expect(!text("environment").contains(hidden)) }
        #expect(!text("open").contains("/ledger"), "\(text("open"))")
        // What it left behind does not lock the ledger.
        #expect(try campaign.send(to: server.endpoint, ["--resume"]).exitCode == 0)
    }

    @Test
    func
        `A dry run names the hook and runs nothing, and a hook that is empty or a secret is refused`()
        throws
    {
        let dry = try campaign.send(
            to: server.endpoint, ["--dry-run"] + hook("touch ran"))
        #expect(dry.exitCode == 0, "\(dry.errors)")
        #expect((dry.output + dry.errors).contains("hook         called when"), "\(dry.output)")
        #expect(try !campaign.directory.names(in: campaign.directory.path).contains("ran"))
        let empty = try campaign.send(to: server.endpoint, ["--hook", ""])
        #expect(empty.exitCode == 2 && empty.errors.contains("--hook is empty"), "\(empty.errors)")
        let key = try String(contentsOfFile: campaign.authority.authKey, encoding: .utf8)
        let secret = try campaign.send(to: server.endpoint, ["--hook=\(key)"])
        #expect(secret.exitCode == 2 && secret.errors.contains("--hook contains a key"))
        #expect(!secret.errors.contains(key.split(separator: "\n")[1].prefix(16)))
    }
}
