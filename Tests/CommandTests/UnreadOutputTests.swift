import BroadsideTestSupport
import Foundation
import Testing

/// Outputs that go nowhere: pipes that nobody reads, and standard descriptors that are closed.
@Suite(.timeLimit(.minutes(60)))
struct UnreadOutputTests {
    private func pipe(_ campaign: Campaign) -> String {
        let path = "\(campaign.directory.path)/fifo"
        #expect(mkfifo(path, 0o600) == 0)
        return path
    }

    @Test(arguments: ["--summary", "--report"], [SIGINT, SIGTERM])
    func `A summary or report into a pipe without reader waits, and a signal ends that`(
        option: String, signal: Int32
    ) throws {
        let server = try LocalAPNs()
        let campaign = try Campaign(rows: 300)
        let fifo = pipe(campaign)
        let process = try Broadside.start(
            campaign.arguments(to: server.endpoint, [option, fifo]), in: campaign.directory)
        // The run itself is over.
        try process.wait { try campaign.ledger("verify").output.contains(", finished") }
        usleep(1_000_000)
        #expect(process.isRunning)
        process.send(signal: signal)
        let ended = try process.wait(limit: 60)
        #expect(ended.exitCode == 5 && ended.errorLines.count == 1, "\(ended.errors)")
        #expect(ended.errors.contains(fifo), "\(ended.errors)")
        #expect(try campaign.statistics().accepted == 300)
        let again = try campaign.send(to: server.endpoint, ["--resume"])
        #expect(again.exitCode == 0, "\(again.errors)")
    }

    @Test(arguments: ["--summary", "--report"])
    func `A stopped run tells how to continue although its summary or report has no reader`(
        option: String
    ) throws {
        let server = try LocalAPNs()
        let campaign = try Campaign(rows: 3000)
        let fifo = pipe(campaign)
        let process = try Broadside.start(
            campaign.arguments(to: server.endpoint, [option, fifo, "--rate", "50"]),
            in: campaign.directory)
        defer { process.send(signal: SIGKILL) }
        try campaign.waitForRows(process)
        process.send(signal: SIGTERM)
        try process.wait {
            try String(contentsOfFile: "\(campaign.ledger)/manifest.json", encoding: .utf8)
                .contains("\"stop\"")
        }
        usleep(1_000_000)
        process.send(signal: SIGTERM)
        let ended = try process.wait(limit: 60)
        #expect(ended.exitCode == 3, "\(ended.errors)")
        #expect(ended.errorLines.count == 2, "\(ended.errors)")
        #expect(ended.errorLines.first?.contains("--resume") == true, "\(ended.errors)")
        #expect(ended.errorLines.last?.contains(fifo) == true, "\(ended.errors)")
    }

    @Test func `A late reader of a pipe gets the whole summary`() throws {
        let server = try LocalAPNs()
        let campaign = try Campaign(rows: 300)
        let fifo = pipe(campaign)
        let process = try Broadside.start(
            campaign.arguments(to: server.endpoint, ["--summary", fifo]), in: campaign.directory)
        try process.wait { try campaign.ledger("verify").output.contains(", finished") }
        let reader = try Subprocess("cat", [fifo], in: campaign.directory)
        #expect(try process.wait(limit: 60).exitCode == 0)
        let text = try reader.wait(limit: 60).output
        #expect(try SendSummary(json: text).accepted == 300)
    }

    @Test func `Metrics and traces into a pipe do not wait`() throws {
        let server = try LocalAPNs()
        let campaign = try Campaign(rows: 300)
        let fifo = pipe(campaign)
        let traced = try campaign.send(to: server.endpoint, ["--trace-frames", fifo], limit: 60)
        #expect(traced.exitCode == 2 && traced.errors.contains("--trace-frames \(fifo)"))
        let sent = try campaign.send(to: server.endpoint, ["--metrics", fifo], limit: 60)
        #expect(sent.exitCode == 0 && sent.errors.contains("nothing reads this pipe"))
        #expect(try server.finish().count == 300)
    }

    @Test(arguments: ["<&-", ">&-", "2>&-", "<&- >&-", "<&- 2>&-", ">&- 2>&-", "<&- >&- 2>&-"])
    func `Outputs never go to a file that took a closed standard descriptor's number`(
        redirections: String
    ) throws {
        let server = try LocalAPNs()
        for options in [[], ["--summary", "-"], ["--log", "json", "--progress", "json"]] {
            let campaign = try Campaign(rows: 300)
            let sent = try Subprocess(
                "bash",
                ["-c", "exec \"$@\" \(redirections)", "bash", Broadside.path()]
                    + campaign.arguments(to: server.endpoint, options), in: campaign.directory
            ).wait(limit: 60)
            // A summary that goes nowhere is an output that is lost.
            let isLost =
                options == ["--summary", "-"]
                && redirections.split(separator: " ").contains(">&-")
            #expect(sent.exitCode == (isLost ? 5 : 0), "\(options) \(sent.errors)")
            #expect(try campaign.ledger("verify").output.contains(", finished"))
            #expect(try campaign.statistics().accepted == 300)
            // Files of the ledger have in them what is theirs.
            let lock = try String(contentsOfFile: campaign.ledger + "/lock", encoding: .utf8)
            #expect(lock == "broadside ledger\nbegun\n")
            for name in try campaign.directory.names(in: campaign.ledger) {
                let text = try Data(contentsOf: URL(filePath: "\(campaign.ledger)/\(name)"))
                let isOwn =
                    name.hasPrefix("segment-") ? text.starts(with: Data("BSLEDGER".utf8)) : true
                #expect(isOwn, "\(name)")
            }
        }
    }
}

/// A person who presses Ctrl-C twice waits for nobody's pipe.
@Suite(.timeLimit(.minutes(60)))
struct UrgentStopTests {
    @Test(arguments: [
        ["--progress", "json"], ["--log", "json"], ["--progress", "json", "--summary", "-"],
    ])
    func `A second signal stops a run whose output is blocked`(options: [String]) throws {
        let server = try RecordingServer("stall")
        let campaign = try Campaign(rows: 200)
        let fifo = "\(campaign.directory.path)/full"
        #expect(mkfifo(fifo, 0o600) == 0)
        // Both ends, so that writing to it waits; full from the beginning.
        let descriptor = open(fifo, O_RDWR | O_NONBLOCK)
        defer { close(descriptor) }
        let filler = [UInt8](repeating: 0x2e, count: 4096)
        while write(descriptor, filler, filler.count) > 0 {}
        let process = try Subprocess(
            "bash",
            ["-c", "exec \"$@\" 2>'\(fifo)' >'\(fifo)'", "bash", Broadside.path()]
                + campaign.arguments(to: server.endpoint, options, without: ["progress"]),
            in: campaign.directory)
        defer { process.send(signal: SIGKILL) }
        // Rows are in flight without a response.
        try process.wait { try server.answerCount() > 20 }
        process.send(signal: SIGINT)
        // Two signals at once may be one for the process.
        try process.wait {
            let status = try Broadside.run(
                ["control", "--ledger", campaign.ledger, "status", "--json"],
                in: campaign.directory)
            return status.output.contains(#""phase":"stopping""#)
        }
        let began = ContinuousClock.now
        process.send(signal: SIGINT)
        let ended = try process.wait(limit: 60)
        #expect(ended.exitCode == 3)
        // Five seconds are what an output is waited for otherwise.
        #expect(ContinuousClock.now - began < .seconds(4.5))
    }
}
