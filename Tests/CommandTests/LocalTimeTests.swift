import BroadsideTestSupport
import Foundation
import Testing

/// `--deliver-at`, `--zone-column`, `--late`, `--quiet`: rows at their local time.
@Suite(.timeLimit(.minutes(60)))
struct LocalTimeTests {
    private static func arguments(
        _ campaign: Campaign, _ more: [String], endpoint: String = "127.0.0.1:1"
    ) -> [String] {
        campaign.arguments(
            to: endpoint, ["--tokens", "\(campaign.directory.path)/list.csv"] + more)
    }

    private static let zones = ["Europe/Berlin", "America/New_York", "Mars/Base", "Asia/Tokyo"]
    /// Next year, in which the simulator's certificates are valid.
    private static let year = Calendar(identifier: .gregorian).component(.year, from: Date()) + 1

    @Test(arguments: [
        (["--deliver-at", "9:00"], "--deliver-at '9:00' is not a time of day"),
        (["--deliver-at", "09:00"], "--deliver-at needs the rows' time zones"),
        (["--quiet", "22:00-08:00"], "--quiet needs the rows' time zones"),
        (["--quiet", "22:00", "--zone-column", "tz"], "--quiet '22:00'"),
        (["--quiet", "22:00-22:00", "--zone-column", "tz"], "--quiet '22:00-22:00'"),
        (["--zone-column", "tz"], "--zone-column requires --deliver-at or --quiet"),
        (["--zone-default", "UTC"], "--zone-default requires --deliver-at or --quiet"),
        (["--on", "2027-01-01"], "--on requires --deliver-at"),
        (["--late", "skip"], "--late requires --deliver-at"),
        (["--late", "never"], "--late"),
        (
            ["--deliver-at", "09:00", "--zone-column", "tz", "--on", "2027-02-29"],
            "--on '2027-02-29'"
        ),
        (
            ["--deliver-at", "09:00", "--zone-column", "tz", "--quiet", "08:00-10:00"],
            "--deliver-at 09:00 is within the quiet hours 08:00-10:00"
        ),
        (
            ["--deliver-at", "09:00", "--zone-column", "tz", "--zone-default", "Berlin"],
            "--zone-default 'Berlin' is not a time zone of this system"
        ),
        (
            ["--deliver-at", "09:00", "--zone-column", "tz", "--zone-default", "../../etc/passwd"],
            "--zone-default '../../etc/passwd' is not a time zone"
        ),
        (["--deliver-at", "09:00", "--zone-column", "zone"], "'zone'"),
    ])
    func `A wrong option is named, with how to put it right, and nothing is written`(
        more: [String], problem: String
    ) throws {
        let campaign = try Campaign(zones: Self.zones)
        let finished = try Broadside.run(Self.arguments(campaign, more), in: campaign.directory)
        #expect(finished.exitCode == 2 && finished.errorLines.count == 1, "\(finished.errors)")
        #expect(finished.errors.contains(problem), "\(finished.errors)")
        #expect(!FileManager.default.fileExists(atPath: campaign.ledger))
    }

    @Test func `A plain list has no column of zones, but may have a zone for all rows`() throws {
        let campaign = try Campaign(rows: 3)
        let refused = try campaign.send(
            to: "127.0.0.1:1", ["--deliver-at", "09:00", "--zone-column", "tz"])
        #expect(
            refused.exitCode == 2
                && refused.errors.contains("--zone-column: there is no column 'tz'"))
        let planned = try campaign.send(
            to: "127.0.0.1:1",
            [
                "--deliver-at", "09:00", "--zone-default", "Asia/Tokyo", "--on", "2030-01-02",
                "--dry-run",
            ])
        #expect(planned.exitCode == 0, "\(planned.errors)")
        #expect(
            planned.output.contains("waves        2030-01-02 00:00 UTC: 3 rows in Asia/Tokyo"))
    }

    @Test func `A dry run shows the waves with their rows, and rows without a zone`() throws {
        let campaign = try Campaign(zones: Self.zones)
        let planned = try Broadside.run(
            Self.arguments(
                campaign,
                [
                    "--deliver-at", "02:30", "--zone-column", "tz", "--on", "2030-03-31",
                    "--max-invalid", "50", "--dry-run",
                ]), in: campaign.directory)
        #expect(planned.exitCode == 0, "\(planned.errors)")
        // On this day the clocks in Berlin go from 02:00 to 03:00.
        for line in [
            "waves        2030-03-30 17:30 UTC: 1 row in Asia/Tokyo",
            "             2030-03-31 01:00 UTC: 1 row in Europe/Berlin",
            "             2030-03-31 06:30 UTC: 1 row in America/New_York",
            "no zone: 1 row names an unknown zone, the first on line 4 ('Mars/Base')",
            "to send      3", "1 BadZone",
        ] {
            #expect(planned.output.contains(line), "\(line): \(planned.output)")
        }
    }

    @Test
    func `A preview names the wave and the local time of each request, and leaves out late rows`()
        throws
    {
        let campaign = try Campaign(zones: [
            "Pacific/Kiritimati", "Asia/Tokyo", "Mars/Base", "America/New_York",
        ])
        let year = Self.year
        let shown = try Broadside.run(
            Self.arguments(
                campaign,
                [
                    "--deliver-at", "09:00", "--zone-column", "tz", "--on", "\(year)-06-15",
                    "--late", "skip", "--max-invalid", "50", "--preview", "9",
                ]), in: campaign.directory,
            environment: Self.stoppedClock("\(year)-06-14 23:00:00"))
        #expect(shown.exitCode == 0, "\(shown.errors)")
        let lines = shown.output.split(separator: "\n").filter { $0.hasPrefix("line ") }
        #expect(lines.count == 2, "\(shown.output)")
        for (line, text) in zip(
            lines,
            [
                "wave 1 of 2: \(year)-06-15 00:00 UTC, \(year)-06-15 09:00 in Asia/Tokyo",
                "wave 2 of 2: \(year)-06-15 13:00 UTC, \(year)-06-15 09:00 in America/New_York",
            ])
        { #expect(line.hasSuffix(", " + text), "\(line)") }
    }

    @Test func `A list whose zones are unknown is refused before anything is sent`() throws {
        let campaign = try Campaign(zones: ["UTC-8", "CET+1", "Berlin", "", "GMT+25"])
        let refused = try Broadside.run(
            Self.arguments(campaign, ["--deliver-at", "09:00", "--zone-column", "tz"]),
            in: campaign.directory)
        #expect(refused.exitCode == 2)
        #expect(refused.errors.contains("line 2 names no time zone that this system knows"))
        #expect(refused.errors.contains("For a fixed offset of UTC-8, write Etc/GMT+8"))
        #expect(!FileManager.default.fileExists(atPath: campaign.ledger))
    }

    /// The clock of the command, one hour of which passes within a second.
    @Test(arguments: [
        (["europe/berlin", "Europe/Berlin", ""], nil as String?),
        (["Europe/Berlin ", "Berlin", "Paris"], "--zone-column 'tz': 2 rows name an unknown zone"),
    ])
    func `Some zones that are unknown are a warning, and most of them a wrong column`(
        zones: [String], refusal: String?
    ) throws {
        let campaign = try Campaign(zones: zones)
        let options = [
            "--deliver-at", "09:00", "--zone-column", "tz", "--zone-default", "Asia/Tokyo",
        ]
        let planned = try Broadside.run(
            Self.arguments(campaign, options + ["--on", "2030-06-15", "--dry-run"]),
            in: campaign.directory)
        guard let refusal else {
            #expect(planned.exitCode == 0)
            #expect(
                planned.errors
                    == "broadside: warning: --zone-column: 1 row names an unknown zone, the "
                    + "first on line 2 ('europe/berlin'): such rows get --zone-default "
                    + "Asia/Tokyo\n")
            #expect(planned.output.contains("by --zone-default: 1 of these rows have no zone"))
            #expect(planned.output.contains("by --zone-default: 1 row names an unknown zone"))
            return
        }
        for more in [["--dry-run"], ["--yes"]] {
            let refused = try Broadside.run(
                Self.arguments(campaign, options + more), in: campaign.directory)
            #expect(refused.exitCode == 2 && refused.errors.contains(refusal), "\(refused.errors)")
            #expect(!FileManager.default.fileExists(atPath: campaign.ledger))
        }
    }

    @Test func `A date that is past everywhere sends nothing, and a time that has passed is shown`()
        throws
    {
        let campaign = try Campaign(zones: ["Europe/Berlin", "Asia/Tokyo"])
        let options = ["--deliver-at", "00:01", "--zone-column", "tz"]
        for more in [["--dry-run"], ["--yes"]] {
            let refused = try Broadside.run(
                Self.arguments(campaign, options + ["--on", "2025-11-27"] + more),
                in: campaign.directory)
            #expect(refused.exitCode == 2)
            #expect(refused.errors.contains("--on 2025-11-27 is past in every time zone"))
            #expect(!FileManager.default.fileExists(atPath: campaign.ledger))
        }
        // 00:01 of UTC's date comes earlier in both.
        let planned = try Broadside.run(
            Self.arguments(campaign, options + ["--dry-run"]), in: campaign.directory)
        #expect(planned.exitCode == 0, "\(planned.errors)")
        #expect(
            planned.output.contains(
                "at once: 2 rows in Europe/Berlin and 1 other: 00:01 has passed there (--late)"))
    }

    /// A clock on which so many seconds pass within one.
    private static func clock(_ start: String, speed: Int = 3600) throws -> [String: String] {
        try stoppedClock("@\(start) x\(speed)")
    }

    /// A clock that stands still.
    private static func stoppedClock(_ time: String) throws -> [String: String] {
        try FakeTime.fixed(time).merging(["TZ": "UTC"]) { $1 }
    }

    @Test func `Waves are told to hook, status and summary, and nothing is connected between them`()
        throws
    {
        let simulation = try Simulation()
        let campaign = try Campaign(zones: [
            "Europe/Berlin", "Asia/Tokyo", "Asia/Tokyo", "America/New_York",
        ])
        let directory = campaign.directory
        let year = Self.year
        let state = simulation.state
        let sending = try Broadside.start(
            [
                "send", "--tokens", "\(directory.path)/list.csv", "--payload",
                campaign.payloadFile, "--certificate", "\(state)/client.pem", "--private-key",
                "\(state)/client.key", "--endpoint", simulation.endpoint, "--ledger",
                campaign.ledger, "--progress", "json", "--summary", "\(directory.path)/summary",
                "--deliver-at", "09:00", "--zone-column", "tz", "--on", "\(year)-06-15", "--hook",
                "cat >> \(directory.path)/hook",
            ] + simulation.options(["ca-file", "topic"]), in: directory,
            // The first wave is due after 4.5 seconds, not at once.
            environment: Self.clock("\(year)-06-14 18:00:00", speed: 4800))
        let finished = try sending.wait(limit: 200)
        #expect(finished.exitCode == 0, "\(finished.errors)")
        let lines = finished.errors.split(separator: "\n").map(String.init)
        let waiting = lines.filter { $0.contains(#""phase":"waiting""#) }
        #expect(waiting.count > 3, "\(finished.errors)")
        #expect(waiting.allSatisfy { $0.contains(#""connections":0"#) })
        #expect(waiting.contains { $0.contains(#""next_at":"\#(year)-06-15T07:00:00Z""#) })
        let events = try String(contentsOfFile: "\(directory.path)/hook", encoding: .utf8)
            .split(separator: "\n").map(String.init)
        #expect(events.count == 5 && events[0].contains(#""event":"started""#), "\(events)")
        for (event, words) in zip(
            events.dropFirst(),
            [
                #""number":1,"count":3,"at":"\#(year)-06-15T00:00:00Z","at_once":false,"rows":2"#,
                #""number":2,"count":3,"at":"\#(year)-06-15T07:00:00Z""#, #""number":3,"count":3"#,
            ])
        {
            #expect(event.contains(#""event":"wave""#) && event.contains(words), "\(event)")
        }
        let summary = try String(contentsOfFile: "\(directory.path)/summary", encoding: .utf8)
        #expect(summary.contains(#""waves" : ["#) && summary.contains(#""accepted" : 4"#))
        let stats = try campaign.statistics()
        #expect(stats.accepted == 4 && stats.remaining == 0)
        try Self.checkReport(campaign, year)
        try simulation.stop()
    }

    @Test func `A row that one stray response leaves is sent again with the next wave`() throws {
        let server = try RecordingServer("stray-once")
        let campaign = try Campaign(zones: ["Asia/Tokyo", "Asia/Tokyo", "Africa/Nairobi"])
        let sent = try Broadside.run(
            Self.arguments(
                campaign,
                [
                    "--deliver-at", "09:00", "--zone-column", "tz", "--on", Self.day(2),
                    "--summary", "-",
                ], endpoint: server.endpoint), in: campaign.directory,
            environment: Self.clock("\(Self.day(1)) 20:00:00"))
        #expect(sent.exitCode == 0, "\(sent.errors)")
        let summary = try SendSummary(json: sent.output)
        #expect(summary.accepted == 3 && summary.remaining == 0, "\(summary)")
        // One row was requested twice.
        #expect(try server.tally(campaign.tokens).total == 4)
    }

    @Test
    func `A provider token that was read while one wave was awaited is used for all later waves`()
        throws
    {
        let server = try RecordingServer("plain", ["--detail", "1,2,3"])
        let campaign = try Campaign(zones: ["Asia/Tokyo", "Asia/Kolkata", "Africa/Nairobi"])
        let directory = campaign.directory
        let now = Int(Date().timeIntervalSince1970)
        let first = try campaign.authority.providerToken(issuedAt: now, in: directory)
        let second = try campaign.authority.providerToken(issuedAt: now + 1, in: directory)
        let file = try directory.write(first, to: "token")
        let sending = try Broadside.start(
            campaign.arguments(
                to: server.endpoint,
                [
                    "--tokens", "\(directory.path)/list.csv", "--auth-token-file", file,
                    "--deliver-at", "09:00", "--zone-column", "tz", "--on", Self.day(2),
                ], without: ["auth-key", "key-id", "team-id"]), in: directory,
            environment: Self.clock("\(Self.day(1)) 20:00:00"))
        try sending.wait { FileManager.default.fileExists(atPath: "\(campaign.ledger)/control") }
        try directory.write(second, to: "fresh")
        #expect(rename("\(directory.path)/fresh", file) == 0)
        sending.send(signal: SIGHUP)
        try sending.wait {
            try String(contentsOfFile: sending.errorsPath, encoding: .utf8)
                .contains("credentials were read again")
        }
        // The file of another wave is not there when the wave begins.
        #expect(unlink(file) == 0)
        let sent = try sending.wait(limit: 200)
        #expect(sent.exitCode == 0, "\(sent.errors)")
        let used = try server.events().compactMap(\.fields)
            .compactMap { $0.first { $0.name == "authorization" }?.value }
        #expect(used.count == 3 && used.last == "bearer \(second)", "\(used)")
        let change = try #require(used.firstIndex(of: "bearer \(second)"))
        #expect(!used[change...].contains("bearer \(first)"))
    }

    /// When the tests of this process began.
    private static let today = Date()

    /// The date in so many days, in UTC: a server's certificate is still valid then.
    private static func day(_ days: Int) -> String {
        today.addingTimeInterval(Double(days) * 86_400).formatted(.iso8601.year().month().day())
    }

    @Test func `A row that is always refused as busy does not delay the next wave`() throws {
        let campaign = try Campaign(
            zones: (0..<40).map { $0 < 20 ? "Asia/Tokyo" : "Asia/Shanghai" })
        let directory = campaign.directory
        let busy = campaign.tokens.token(0)
        let replay = try directory.write(
            #"{"token":"\#(busy)","status":429,"reason":"TooManyRequests"}"#
                + (1..<40).map { "\n{\"token\":\"\(campaign.tokens.token($0))\",\"status\":200}" }
                .joined(), to: "replay")
        let server = try LocalAPNs(["--replay", replay])
        let identity = try campaign.authority.clientCertificate(in: directory)
        // In Tokyo, it is shortly before nine o'clock; in Shanghai, nine o'clock is an hour later.
        let clock = try Self.clock("\(Self.day(2)) 23:59:00", speed: 600)
        let sent = try Broadside.run(
            campaign.arguments(
                to: server.endpoint,
                [
                    "--tokens", "\(directory.path)/list.csv", "--certificate", identity.certificate,
                    "--private-key", identity.key,
                    "--zone-column", "tz", "--deliver-at", "09:00", "--on", Self.day(3),
                    "--retry-for", "40s",
                ], without: ["auth-key", "key-id", "team-id"]), in: directory,
            environment: clock)
        #expect(sent.exitCode == 6, "\(sent.errors)")
        let rows = try campaign.ledger("export").output.split(separator: "\n").dropFirst()
            .map { $0.split(separator: ",", omittingEmptySubsequences: false) }
        #expect(rows.count == 40 && rows.count { $0[2] == "accepted" } == 39)
        #expect(rows[0][2] == "failed" && rows[0][4] == "TooManyRequests", "\(rows[0])")
        let midnight = try #require(
            try? Date("\(Self.day(3))T00:00:00Z", strategy: .iso8601))
        let start = UInt64(midnight.timeIntervalSince1970) * 1_000
        for row in rows[20...] {
            let time = try #require(UInt64(row[8]))
            // 40 seconds of retries are nearly seven hours here.
            #expect(time >= start + 3_600_000 && time < start + 5 * 3_600_000, "\(row)")
        }
    }

    @Test func `The report of merged parts says that each has waves of its own`() throws {
        let server = try RecordingServer()
        let campaign = try Campaign(rows: 4)
        let folder = campaign.directory.path
        // In three hours, when it is six hours ago in Tokyo.
        let hour = (Int(Date().timeIntervalSince1970) / 3_600 + 3) % 24
        let quiet = String(format: "%02d:00-%02d:30", hour, hour)
        for part in 1...2 {
            let list = try campaign.directory.write(
                "token,tz\n\(campaign.tokens.token(part)),UTC\n"
                    + "\(campaign.tokens.token(3 * (part - 1))),Asia/Tokyo\n", to: "list\(part).csv"
            )
            let sent = try Broadside.run(
                campaign.arguments(
                    to: server.endpoint,
                    [
                        "--tokens", list, "--part", "\(part)/2", "--campaign-id",
                        "00000000000000ab", "--ledger",
                        "\(folder)/part\(part)", "--zone-column", "tz", "--quiet", quiet,
                    ]), in: campaign.directory)
            #expect(sent.exitCode == 0, "\(sent.errors)")
        }
        func page(_ ledger: String) throws -> String {
            let made = try Broadside.run(
                ["report", "--ledger", "\(folder)/\(ledger)", "--output", "\(folder)/page"],
                in: campaign.directory)
            #expect(made.exitCode == 0, "\(made.errors)")
            return try String(contentsOfFile: "\(folder)/page", encoding: .utf8)
        }
        let merged = try Broadside.run(
            [
                "ledger", "merge", "--output", "\(folder)/merged", "\(folder)/part1",
                "\(folder)/part2",
            ], in: campaign.directory)
        #expect(merged.exitCode == 0, "\(merged.errors)")
        #expect(try page("merged").contains("Each of the 2 merged ledgers had its own waves"))
        let own = try page("part2")
        #expect(own.contains("Time zones</th>") && !own.contains("merged ledgers"))
    }

    /// Holds the report of three waves against what is known of them.
    private static func checkReport(_ campaign: Campaign, _ year: Int) throws {
        let page = "\(campaign.directory.path)/page.html"
        let made = try Broadside.run(
            ["report", "--ledger", campaign.ledger, "--output", page], in: campaign.directory,
            environment: ["TZ": "UTC"])
        #expect(made.exitCode == 0, "\(made.errors)")
        let html = try String(contentsOfFile: page, encoding: .utf8)
        let table = try #require(html.split(separator: "<h2>Waves</h2>").dropFirst().first)
        let rows = table.split(separator: "</table>")[0].split(separator: "<tr>").dropFirst(2)
        let cells = rows.map { row in
            row.matches(of: /<td[^>]*>([^<]*)<\/td>/).map { String($0.1) }
        }
        #expect(cells.count == 3)
        for (row, expected) in zip(
            cells,
            [
                ["1", "\(year)-06-15 00:00 UTC", "\(year)-06-15 09:00", "Asia/Tokyo", "2", "2"],
                ["2", "\(year)-06-15 07:00 UTC", "\(year)-06-15 09:00", "Europe/Berlin", "1", "1"],
                [
                    "3", "\(year)-06-15 13:00 UTC", "\(year)-06-15 09:00", "America/New_York", "1",
                    "1",
                ],
            ])
        {
            #expect(row.count == 9 && Array(row.prefix(5)) == Array(expected.prefix(5)), "\(row)")
            #expect(Array(row.suffix(3)) == [expected[5], "0", "0"], "\(row)")
            let began = row.dropFirst(5).first?.suffix(8) ?? ""
            #expect(began >= expected[1].dropFirst(11).prefix(5), "\(row)")
        }
    }

    @Test func `A wait is stopped by the operator, and continued with the same options only`()
        throws
    {
        let simulation = try Simulation()
        let campaign = try Campaign(zones: ["Europe/Berlin", "Asia/Tokyo"])
        let more =
            try ["--deliver-at", "09:00", "--zone-column", "tz", "--on", "2035-06-15"]
            + simulation.credentials()
        let hook = "\(campaign.directory.path)/hook"
        let sending = try Broadside.start(
            Self.arguments(
                campaign, more + ["--hook", "echo $BROADSIDE_EVENT >> '\(hook)'"],
                endpoint: simulation.endpoint), in: campaign.directory)
        var status = ""
        try sending.wait {
            // The socket is there a moment before anything listens.
            let told = try Broadside.run(
                ["control", "--ledger", campaign.ledger, "status"], in: campaign.directory)
            status = told.output + told.errors
            return told.exitCode == 0
        }
        #expect(status.contains("phase               waiting"), "\(status)")
        let table = try Broadside.run(["status", campaign.ledger], in: campaign.directory)
        #expect(table.output.contains("waiting"), "\(table.output)")
        let stop = try Broadside.run(
            ["control", "--ledger", campaign.ledger, "stop"], in: campaign.directory)
        #expect(stop.exitCode == 0, "\(stop.errors)")
        let stopped = try sending.wait(limit: 60)
        #expect(stopped.exitCode == 3, "\(stopped.errors)")
        #expect(try campaign.statistics().remaining == 2)
        #expect(try String(contentsOfFile: hook, encoding: .utf8) == "stopped\n")
        for (other, difference) in [
            (["--deliver-at", "10:00"], "--deliver-at was 09:00, now it is 10:00"),
            (["--on", "2035-06-16"], "--on was 2035-06-15, now it is 2035-06-16"),
            (["--late", "skip"], "--late was not set, now it is skip"),
            (["--quiet", "22:00-06:00"], "--quiet was not set, now it is 22:00-06:00"),
            (["--zone-default", "UTC"], "--zone-default was not set, now it is UTC"),
        ] {
            var changed = more
            if let at = changed.firstIndex(of: other[0]) {
                changed[at + 1] = other[1]
            } else {
                changed += other
            }
            let refused = try Broadside.run(
                Self.arguments(campaign, changed + ["--resume"], endpoint: simulation.endpoint),
                in: campaign.directory)
            #expect(
                refused.exitCode == 2 && refused.errors.contains(difference), "\(refused.errors)")
        }
        try simulation.stop()
    }

    /// A send to a simulation at a time that stands still, with a certificate: a provider token would be from another
    /// time than the server's.
    private static func start(
        _ campaign: Campaign, _ simulation: Simulation, at time: String, _ more: [String]
    ) throws -> Subprocess {
        try Broadside.start(
            [
                "send", "--tokens", "\(campaign.directory.path)/list.csv", "--payload",
                campaign.payloadFile, "--certificate", "\(simulation.state)/client.pem",
                "--private-key", "\(simulation.state)/client.key", "--endpoint",
                simulation.endpoint, "--ledger", campaign.ledger, "--zone-column", "tz",
            ] + simulation.options(["ca-file", "topic"]) + more, in: campaign.directory,
            environment: stoppedClock(time))
    }

    @Test
    func `A resume sends what is due at once, also if zones that were sent are in quiet hours now`()
        throws
    {
        let simulation = try Simulation()
        let campaign = try Campaign(zones: [
            "Asia/Tokyo", "Asia/Tokyo", "America/New_York", "Pacific/Honolulu",
        ])
        // At 11:00 UTC clocks there show 20:00, 07:00 and 01:00, at 14:00 UTC 23:00, 10:00 and 04:00.
        for (time, use, accepted) in [("11:00", [], 2), ("14:00", ["--resume"], 3)] {
            let sending = try Self.start(
                campaign, simulation, at: "\(Self.year)-06-15 \(time):00",
                ["--quiet", "22:00-08:00"] + use)
            try sending.wait { (try? campaign.statistics().accepted) == accepted }
            sending.send(signal: SIGTERM)
            let stopped = try sending.wait(limit: 60)
            #expect(stopped.exitCode == 3, "\(stopped.errors)")
        }
        #expect(try campaign.statistics().remaining == 1)
        // On the next day at 09:00 UTC, clocks in Honolulu show 23:00.
        let quiet = ["--quiet", "22:00-08:00", "--resume"]
        let wave = "waves        2027-06-16 18:00 UTC: 1 row in Pacific/Honolulu\n"
        let planned = try Self.start(
            campaign, simulation, at: "2027-06-16 09:00:00", quiet + ["--dry-run"]
        ).wait()
        #expect(planned.exitCode == 0 && planned.output.contains(wave), "\(planned.output)")
        let waiting = try Self.start(
            campaign, simulation, at: "2027-06-16 09:00:00", quiet)
        try Self.checkNextWave(
            waiting, campaign, ["3", "3", "2027-06-16T18:00:00Z", "1"], plan: wave)
        try simulation.stop()
    }

    /// Checks what a run that waits says of its next wave, and stops the run.
    ///
    /// - Parameter expected: Number of waves, number of the next one, its time and its rows.
    private static func checkNextWave(
        _ waiting: Subprocess, _ campaign: Campaign, _ expected: [String], plan: String
    ) throws {
        let keys = ["count", "next", "next_at", "next_rows"]
        var found: [String] = []
        try waiting.wait {
            let status = try Broadside.run(
                ["status", "--json", campaign.ledger], in: campaign.directory)
            let json = try JSONSerialization.jsonObject(with: Data(status.output.utf8))
            let run = (json as? [String: Any])?["waves"] as? [String: Any]
            found = keys.map { key in run.map { "\($0[key] ?? "-")" } ?? "-" }
            return found[0] != "-"
        }
        #expect(found == expected)
        waiting.send(signal: SIGTERM)
        let stopped = try waiting.wait(limit: 60)
        #expect(stopped.exitCode == 3 && stopped.errors.contains(plan), "\(stopped.errors)")
    }

    @Test
    func `A row without a known zone has its arm, and like a late one makes no row a duplicate`()
        throws
    {
        let simulation = try Simulation()
        let campaign = try Campaign(rows: 2)
        // 09:00 is now in Tokyo, and was three hours ago in Auckland.
        let rows = [
            (0, "Mars/Base"), (0, "Asia/Tokyo"), (1, "Pacific/Auckland"), (1, "Asia/Tokyo"),
            (1, "Asia/Tokyo"),
        ].map { "\(campaign.tokens.token($0)),\($1)\n" }
        try campaign.directory.write("token,tz\n" + rows.joined(), to: "list.csv")
        let finished = try Self.start(
            campaign, simulation, at: "\(Self.year)-06-15 00:00:00",
            [
                "--deliver-at", "09:00", "--on", "\(Self.year)-06-15", "--late", "skip",
                "--duplicates",
                "skip", "--split", "a=50,b=50", "--split-salt", "s", "--max-invalid", "100",
            ]
        ).wait()
        #expect(finished.exitCode == 0, "\(finished.errors)")
        let found = try campaign.ledger("export").output.split(separator: "\n").dropFirst()
            .map { $0.split(separator: ",", omittingEmptySubsequences: false).map(String.init) }
        #expect(found.map { $0[4] } == ["BadZone", "", "Late", "", "Duplicate"])
        #expect(found.map { $0[2] } == ["invalid", "accepted", "skipped", "accepted", "skipped"])
        #expect(Set(found.map { $0.last ?? "" }).isSubset(of: ["a", "b"]), "\(found)")
        try simulation.stop()
    }
}
