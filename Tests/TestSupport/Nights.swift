import Foundation

/// A nightly campaign: its file, the folder of its ledgers, and a clock that its starts have.
package struct Nights: Sendable {
    package let campaign: Campaign

    package var file: String { "\(campaign.directory.path)/evening.json5" }
    package var folder: String { "\(campaign.directory.path)/nights" }

    /// Makes the campaign's file, and the folder.
    ///
    /// - Parameter more: Options of a send that are in the file.
    package init(rows: Int, endpoint: String, _ more: [String] = []) throws {
        campaign = try Campaign(rows: rows)
        let printed = try Broadside.run(
            campaign.arguments(
                to: endpoint, ["--print-campaign", "--connections", "1"] + more,
                without: ["ledger"]), in: campaign.directory)
        guard printed.exitCode == 0 else { throw TestFailure(printed.errors) }
        try campaign.directory.write(printed.output, to: "evening.json5")
        try FileManager.default.createDirectory(
            atPath: folder, withIntermediateDirectories: false)
    }

    /// The date of a day, counted from day 0.
    package func date(_ day: Int) -> String { FakeTime.date(day) }

    /// The environment of a start at a time of a day.
    package func clock(_ day: Int, _ time: String) throws -> [String: String] {
        try FakeTime.at(day, time)
    }

    package func arguments(_ more: [String] = []) -> [String] {
        ["night", "--campaign", file, "--ledgers", folder] + more
    }

    /// One start, to its end.
    package func run(
        _ more: [String] = [], at time: (day: Int, clock: String)? = nil,
        environment: [String: String] = [:]
    ) throws -> Finished {
        let clock = try time.map { try self.clock($0.day, $0.clock) } ?? ["TZ": "UTC"]
        return try Broadside.run(
            arguments(more), in: campaign.directory, environment: clock.merging(environment) { $1 })
    }

    /// One start.
    package func start(
        _ more: [String] = [], at time: (day: Int, clock: String)? = nil
    ) throws -> Subprocess {
        let clock = try time.map { try self.clock($0.day, $0.clock) } ?? ["TZ": "UTC"]
        // A `timeout` in the background would send a signal twice.
        return try Subprocess(
            "timeout", ["--foreground", "300", Broadside.path()] + arguments(more),
            in: campaign.directory, environment: clock)
    }

    /// One start that a signal stops after its first rows. No earlier start of that date has sent any.
    ///
    /// - Parameter more: Options of this start.
    package func runCutShort(
        _ more: [String] = [], at time: (day: Int, clock: String)
    ) throws -> Finished {
        // At this rate, rows are left however long the look and the signal take.
        let sending = try start(["--rate", "5"] + more, at: time)
        try sending.wait { ((try? statistics(time.day).accepted) ?? 0) > 1 }
        sending.send(signal: SIGTERM)
        return try sending.wait(limit: 120)
    }

    package func ledger(_ day: Int) -> String { "\(folder)/evening/\(date(day))" }

    package func has(_ day: Int) -> Bool { FileManager.default.fileExists(atPath: ledger(day)) }

    /// The lines of the notes about nights, without the first one.
    package func notes() throws -> [String] {
        try String(contentsOfFile: "\(folder)/evening/nights", encoding: .utf8)
            .split(separator: "\n").dropFirst().map(String.init)
    }

    /// The counts of a night's ledger.
    package func statistics(_ day: Int) throws -> SendSummary {
        try SendSummary(
            json: Broadside.run(
                ["ledger", "stats", "--json", "--ledger", ledger(day)], in: campaign.directory
            ).output)
    }

    /// Waits until rows of a night have responses.
    package func waitForRows(_ process: Subprocess, day: Int) throws {
        try process.wait {
            let file = try? FileManager.default.attributesOfItem(
                atPath: "\(ledger(day))/segment-0001-00")
            return (file?[.size] as? Int ?? 0) > 4096
        }
    }
}

extension FakeTime {
    private static let now = Int(Date().timeIntervalSince1970)
    /// 00:00 UTC of the day on which the tests of this process began: day 0.
    private static let midnight = now / 86_400 * 86_400

    /// The date of a day, counted from day 0.
    package static func date(_ day: Int) -> String {
        let format = DateFormatter()
        format.locale = Locale(identifier: "en_US_POSIX")
        format.timeZone = TimeZone(identifier: "UTC")
        format.dateFormat = "yyyy-MM-dd"
        return format.string(
            from: Date(timeIntervalSince1970: Double(midnight + day * 86_400)))
    }

    /// The environment of a process at a time of a day, `23:55`, in UTC. Servers have certificates for days 1 to 58.
    package static func at(_ day: Int, _ time: String) throws -> [String: String] {
        let parts = time.split(separator: ":").compactMap { Int($0) }
        guard parts.count == 2 else { throw TestFailure("\(time) is not a time") }
        let offset =
            midnight + day * 86_400 + parts[0] * 3_600 + parts[1] * 60
            - Int(Date().timeIntervalSince1970)
        return try fixed(offset < 0 ? "\(offset)" : "+\(offset)").merging(["TZ": "UTC"]) { $1 }
    }
}
