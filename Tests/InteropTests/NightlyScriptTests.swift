import BroadsideTestSupport
import Foundation
import Testing

/// The command lines that a timer or a cluster starts again and again: run as they are in `contrib`.
@Suite(.timeLimit(.minutes(60)))
struct NightlyScriptTests {
    @Test func `The nightly timer and CronJob start at least two hours before midnight`() throws {
        let timer = try NightlyScript(file: "systemd/broadside.timer", ledgers: "").source
        let calendar = try #require(
            timer.firstMatch(of: /\nOnCalendar=\*-\*-\* (\d\d):(\d\d):00\n/))
        let job = try NightlyScript(file: "kubernetes/cronjob.yaml", ledgers: "").source
        let schedule = try #require(job.firstMatch(of: /\n  schedule: "(\d+) (\d+) \* \* \*"\n/))
        let delay = try #require(job.firstMatch(of: /\n  startingDeadlineSeconds: (\d+)\n/))
        for (hour, minute, seconds) in [
            (calendar.1, calendar.2, "0"), (schedule.2, schedule.1, delay.1),
        ] {
            let start = try #require(Int(hour)) * 60 + #require(Int(minute))
            #expect(try start + #require(Int(seconds)) / 60 <= 22 * 60, "\(hour):\(minute)")
        }
    }

    @Test(arguments: NightlyScript.all)
    func `The nightly command sends remaining rows at the next start, not failed or unknown ones`(
        script: NightlyScript
    ) throws {
        let server = try RecordingServer("reset")
        let unit = try NightlyUnit(script, rows: 60, endpoint: server.endpoint, [])
        let campaign = unit.campaign
        let path = campaign.directory.path
        // A start that begins no ledger, as where io_uring is forbidden, is not a campaign's.
        #expect(try unit.run(1, "23:54", command: "false").exitCode == 1)

        let first = try unit.run(1, "23:55")
        #expect(first.exitCode == 6, "\(first.errors)")
        let left = try unit.statistics(1)
        #expect(left.unknown > 0 && left.remaining == 0)
        // As kubelet does with a volume of a group of its own, at each start of a pod.
        let ledger = unit.ledger(1)
        if !script.isUnit {
            try FileManager.default.setAttributes(
                [.posixPermissions: 0o2770], ofItemAtPath: ledger)
        }
        let connections = try server.events().filter { $0.event == "preface" }.count
        for (day, clock) in [(1, "23:58"), (2, "00:10")] {
            let second = try unit.run(day, clock)
            #expect(second.exitCode == 6, "\(second.errors)")
            #expect(second.errors.contains("--retry"), "\(second.errors)")
        }
        #expect(try server.events().filter { $0.event == "preface" }.count == connections)
        let retried = try Broadside.run(
            [
                "send", "--campaign", "\(path)/campaign.json5", "--ledger", ledger, "--resume",
                "--retry", "failed,unknown", "--auth-key", "\(path)/auth-key",
                "--skip-dead", (ledger as NSString).deletingLastPathComponent,
            ],
            in: campaign.directory)
        #expect(retried.exitCode == 0, "\(retried.errors)")
        // What is complete may be started again: there is nothing to do, and that is fine.
        let last = try unit.run(2, "00:20")
        #expect(last.exitCode == 0, "\(last.errors)")

        // From its second start on it begins no campaign: the first may have reached all devices.
        try FileManager.default.moveItem(atPath: ledger, toPath: ledger + ".elsewhere")
        let lost = try unit.run(2, "00:30")
        #expect(lost.exitCode == 2 && lost.errors.contains("its ledger is gone"), "\(lost.errors)")
        #expect(!unit.has(1) && !unit.has(2))
        try FileManager.default.moveItem(atPath: ledger + ".elsewhere", toPath: ledger)
        #expect(try unit.run(2, "00:40").exitCode == 0)
    }

    @Test(arguments: NightlyScript.all)
    func `The nightly command continues a stopped night and begins another the next evening`(
        script: NightlyScript
    ) throws {
        let server = try RecordingServer()
        let unit = try NightlyUnit(script, rows: 3_000, endpoint: server.endpoint, [])
        let stopped = try unit.stop(1, "23:55")
        #expect(stopped.exitCode == 3, "\(stopped.errors)")
        #expect(try unit.statistics(1).remaining ?? 0 > 0)
        let continued = try unit.run(2, "00:30")
        #expect(continued.exitCode == 0, "\(continued.errors)")
        #expect(try unit.statistics(1).accepted == 3_000)
        // By hand, and by a manager that is wrong about what was done.
        #expect(try unit.run(2, "00:40").exitCode == 0)
        #expect(!unit.has(2))

        let next = try unit.run(2, "23:55")
        #expect(next.exitCode == 0, "\(next.errors)")
        #expect(!next.errors.contains("not complete"), "\(next.errors)")
        #expect(try unit.statistics(2).accepted == 3_000)
        #expect(try server.tally(unit.campaign.tokens).counts.allSatisfy { $0 == 2 })
    }

    @Test(arguments: NightlyScript.all)
    func `The nightly command leaves a night that ended long ago, and the next one says so`(
        script: NightlyScript
    ) throws {
        let server = try RecordingServer()
        let unit = try NightlyUnit(script, rows: 2_000, endpoint: server.endpoint, [])
        #expect(try unit.stop(1, "23:55").exitCode == 3)
        let before = try unit.statistics(1)
        let next = try unit.run(2, "23:55")
        #expect(next.exitCode == 0, "\(next.errors)")
        #expect(
            next.errors.contains("the night of \(FakeTime.date(1)) is not complete"),
            "\(next.errors)")
        #expect(next.errors.contains("--date \(FakeTime.date(1))"))
        #expect(try unit.statistics(2).accepted == 2_000)
        #expect(try unit.statistics(1) == before)
    }

    @Test(arguments: NightlyScript.all)
    func `An automatic restart after the length of a night begins no other night`(
        script: NightlyScript
    ) throws {
        let server = try RecordingServer()
        let unit = try NightlyUnit(script, rows: 3_000, endpoint: server.endpoint, [])
        #expect(try unit.stop(1, "23:55").exitCode == 3)
        // A start by hand continues the night late, and ends too early.
        let before = try unit.statistics(1).accepted
        let late = try unit.start(2, "11:50", ["--rate", "5"])
        try late.wait { ((try? unit.statistics(1).accepted) ?? 0) > before }
        late.send(signal: SIGTERM)
        #expect(try unit.end(late, restarts: true).exitCode == 3)
        let restarted = try unit.run(2, "11:57", restarts: true)
        #expect(restarted.exitCode == 0, "\(restarted.errors)")
        #expect(try unit.statistics(1).accepted == 3_000 && !unit.has(2))
        // The manager did not notice this end, and repeats the start.
        let repeated = try unit.run(2, "12:10", restarts: true)
        #expect(repeated.exitCode == 0, "\(repeated.errors)")
        #expect(try !unit.has(2) && server.answers().count == 3_000)

        // The file with the date still exists, as if the service had been stopped before a restart.
        let next = try unit.run(2, "23:55")
        #expect(next.exitCode == 0, "\(next.errors)")
        #expect(try unit.statistics(2).accepted == 3_000)
    }

    @Test(arguments: NightlyScript.all)
    func `An automatic restart after a deadline sends nothing`(script: NightlyScript) throws {
        let server = try RecordingServer()
        let unit = try NightlyUnit(
            script, rows: 3_000, endpoint: server.endpoint, ["--deadline", "2h"])
        let stopped = try unit.stop(1, "23:55", restarts: true)
        #expect(stopped.exitCode == 3, "\(stopped.errors)")
        #expect(!stopped.errors.contains("--date-file"), "a command for a person names the date")
        let before = try unit.statistics(1)
        for clock in ["02:00", "11:57"] {
            let restarted = try unit.run(2, clock, restarts: true)
            #expect(restarted.exitCode == 3, "\(restarted.errors)")
        }
        #expect(try unit.statistics(1).accepted == before.accepted && !unit.has(2))
    }

    @Test(arguments: NightlyScript.all)
    func `The nightly command begins a missed night after midnight under its own name`(
        script: NightlyScript
    ) throws {
        let server = try RecordingServer()
        let unit = try NightlyUnit(script, rows: 20, endpoint: server.endpoint, [])
        let payload = unit.campaign.payloadFile
        try FileManager.default.moveItem(atPath: payload, toPath: payload + ".away")
        #expect(try unit.run(1, "23:55").exitCode == 2)
        try FileManager.default.moveItem(atPath: payload + ".away", toPath: payload)
        #expect(try unit.run(2, "00:20").exitCode == 0)
        #expect(try unit.statistics(1).accepted == 20 && !unit.has(2))
        #expect(try unit.run(2, "23:55").exitCode == 0)
        #expect(try server.answers().count == 40)
    }
}
