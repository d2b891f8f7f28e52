import BroadsideTestSupport
import Foundation
import Testing

/// The report page: made by a run and from a ledger, judged by a browser.
@Suite(.timeLimit(.minutes(60)))
struct ReportTests {
    /// A campaign that was stopped once and resumed, with refusals.
    private func campaign() throws -> Campaign {
        let server = try LocalAPNs(["--unregistered", "0.1", "--seed", "7"])
        let campaign = try Campaign(rows: 3000)
        let page = "\(campaign.directory.path)/first.html"
        let sending = try Broadside.start(
            campaign.arguments(to: server.endpoint, ["--rate", "300", "--report", page]),
            in: campaign.directory)
        try sending.wait { ((try? campaign.statistics().accepted) ?? 0) >= 300 }
        sending.send(signal: SIGTERM)
        let first = try sending.wait()
        #expect(first.exitCode == 3, "\(first.errors)")
        let text = try String(contentsOfFile: page, encoding: .utf8)
        #expect(text.contains("Stopped after") && text.contains("--resume"))
        let second = try campaign.send(
            to: server.endpoint, ["--resume", "--report", "\(campaign.directory.path)/second.html"])
        #expect(second.exitCode == 0, "\(second.errors)")
        _ = try server.finish()
        return campaign
    }

    /// Writes the report of the campaign's ledger to `ledger.html`.
    private func report(_ campaign: Campaign) throws {
        let made = try Broadside.run(
            [
                "report", "--ledger", campaign.ledger, "--output",
                "\(campaign.directory.path)/ledger.html",
            ],
            in: campaign.directory)
        #expect(made.exitCode == 0, "\(made.errors)")
    }

    @Test func `The report has the outcome and no secret`() throws {
        let campaign = try campaign()
        let refused = try campaign.statistics().rejected
        try report(campaign)
        for name in ["second.html", "ledger.html"] {
            let page = "\(campaign.directory.path)/\(name)"
            let text = try String(contentsOfFile: page, encoding: .utf8)
            #expect(text.contains("All 3,000 rows are settled after"))
            #expect(text.contains("and rejected \(refused)."))
            for part in [
                "Rows settled per second", "Response times", "Responses by response time",
                "Unregistered", "Connections of the latest run",
                "Settings of the latest run", "broadside prune <span class=\"o\">--ledger</span>",
                ">run 2<",
            ] {
                #expect(text.contains(part), "\(name): \(part)")
            }
            let key = try String(contentsOfFile: campaign.authority.authKey, encoding: .utf8)
            for secret in key.split(separator: "\n").filter({ $0.count > 20 && !$0.hasPrefix("-") })
            {
                #expect(!text.contains(secret))
            }
            #expect(!text.contains("bearer") && !text.contains(campaign.tokens.token(0)))
            // Nothing is fetched: no address but names of files.
            for word in ["http://", "https://", "src=", "url(", "@import", "<script"] {
                #expect(!text.contains(word), "\(word)")
            }
        }
    }

    @Test(.needs(.chromium))
    func `A browser shows the report without errors, wide and narrow`() throws {
        let campaign = try campaign()
        try report(campaign)
        for width in [390, 1280] {
            try browse("\(campaign.directory.path)/ledger.html", width, campaign)
        }
    }

    /// Headless Chromium loads the page: no word on its console, nothing wider than the window, a
    /// title and a table for each chart.
    private func browse(_ page: String, _ width: Int, _ campaign: Campaign) throws {
        let measured = try Chromium.measure(
            page,
            """
            const wide = [...document.querySelectorAll("main *")].filter(one =>
                !one.closest(".scroll") && one.getBoundingClientRect().right > innerWidth + 1);
            const measured = {wide: wide.map(one => one.outerHTML.slice(0, 90)),
                charts: document.querySelectorAll("figure svg[role=img] > title").length,
                tables: document.querySelectorAll("figure details table").length,
                page: document.documentElement.scrollWidth <= innerWidth};
            """, width: width, in: campaign.directory)
        #expect(measured == #"{"wide":[],"charts":3,"tables":3,"page":true}"#, "\(width)")
    }

    /// Cells of the table of runs, by run.
    private func runs(_ page: String) throws -> [[String]] {
        let table = try #require(page.split(separator: "<h2>Runs</h2>").dropFirst().first)
        return table.prefix { $0 != "\u{0}" }.split(separator: "</table>")[0]
            .split(separator: "<tr>").map { row in
                row.matches(of: /<td[^>]*>([^<]*)<\/td>/).map { String($0.1) }
            }.filter { !$0.isEmpty }
    }

    @Test func `A killed run has its time and its rows on the page, and all pages agree`() throws {
        let server = try LocalAPNs()
        let campaign = try Campaign(rows: 4000)
        let killed = try Broadside.start(
            campaign.arguments(to: server.endpoint, ["--rate", "400"]), in: campaign.directory)
        try killed.wait {
            let status = try Broadside.run(
                ["status", "--json", campaign.ledger], in: campaign.directory)
            let settled = status.output.firstMatch(of: /"settled":(\d+)/).flatMap { Int($0.1) }
            return settled ?? 0 >= 1000
        }
        killed.send(signal: SIGKILL)
        _ = try killed.wait()
        try report(campaign)
        let interrupted = try String(
            contentsOfFile: "\(campaign.directory.path)/ledger.html", encoding: .utf8)
        #expect(interrupted.contains(">interrupted, ") && interrupted.contains("Interrupted after"))

        let page = "\(campaign.directory.path)/second.html"
        let resumed = try campaign.send(
            to: server.endpoint, ["--rate", "2000", "--resume", "--report", page])
        // The kill may leave rows unknown.
        #expect([0, 6].contains(resumed.exitCode), "\(resumed.errors)")
        try report(campaign)
        let nights = try Broadside.run(
            ["report", "--all", "--json", campaign.ledger], in: campaign.directory)
        let seconds = try #require(
            nights.output.firstMatch(of: /"running_seconds":([0-9.]+)/).flatMap { Double($0.1) })
        #expect(seconds >= 3.4, "\(seconds)")
        for name in ["second", "ledger"] {
            let text = try String(
                contentsOfFile: "\(campaign.directory.path)/\(name).html", encoding: .utf8)
            let runs = try runs(text)
            #expect(runs.map { $0[6] } == ["interrupted", "complete"], "\(name): \(runs)")
            let taken = runs.compactMap { Double($0[3].prefix { $0 != " " }) }
            #expect(taken.count == 2 && taken[0] >= 2, "\(name): \(runs)")
            #expect(abs(taken.reduce(0, +) - seconds) <= 2, "\(name): \(runs), \(seconds) s")
            let rate = try #require(
                text.firstMatch(of: /([0-9,]+) rows per second on average/)
                    .flatMap { Double($0.1.replacing(",", with: "")) })
            #expect(abs(rate - 4000 / seconds) <= 4000 / seconds * 0.05, "\(name): \(rate)")
        }
    }

    @Test func `A ledger whose telemetry is missing or damaged still has a report`() throws {
        let server = try RecordingServer()
        let campaign = try Campaign(rows: 50)
        #expect(try campaign.send(to: server.endpoint).exitCode == 0)
        for content in [nil, "{", #"{"version":9}"#] as [String?] {
            let file = "\(campaign.ledger)/telemetry.json"
            try FileManager.default.removeItem(atPath: file)
            if let content { try content.write(toFile: file, atomically: true, encoding: .utf8) }
            let made = try Broadside.run(
                ["report", "--ledger", campaign.ledger], in: campaign.directory)
            #expect(made.exitCode == 0, "\(made.errors)")
            #expect(made.output.contains("All 50 rows are settled"))
            #expect(made.output.contains("Rows settled per second"))
            if content == nil { try "".write(toFile: file, atomically: true, encoding: .utf8) }
        }
        #expect(try campaign.ledger("verify").exitCode == 0)
        let wrong = try Broadside.run(["report", "--ledger", "/nowhere"], in: campaign.directory)
        #expect(wrong.exitCode == 2)
    }
}
