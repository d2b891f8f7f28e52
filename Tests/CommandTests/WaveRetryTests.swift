import BroadsideTestSupport
import Foundation
import Testing

/// `--resume --retry` with quiet hours, with a clock that goes forward when the test says so.
@Suite(.timeLimit(.minutes(60)))
struct WaveRetryTests {
    /// The first chunk has rows in UTC only, and the last one in Tokyo only.
    private static let zones = (0..<2_400).map { $0 < 1_200 ? "UTC" : "Asia/Tokyo" }

    private let campaign: Campaign
    private let server: RecordingServer
    private let clock: Clock

    /// Sends the rows at noon in UTC, when it is 21:00 in Tokyo: all of them fail.
    init() throws {
        campaign = try Campaign(zones: Self.zones)
        server = try RecordingServer()
        clock = try Clock(campaign.directory)
        let busy = try RecordingServer(
            "reason", ["--status", "429", "--reason", "TooManyRequests"])
        try clock.set(day: 1, "12:00")
        let first = try start(
            to: busy.endpoint, ["--max-attempts", "1", "--retry-for", "1s"]
        ).wait(limit: 120)
        #expect(first.exitCode == 6, "\(first.errors)")
        #expect(try campaign.statistics().failed == 2_400)
    }

    /// A file that gives a process its wall clock.
    private struct Clock {
        let directory: TemporaryDirectory

        init(_ directory: TemporaryDirectory) throws {
            self.directory = directory
            _ = try directory.write("+0", to: "clock")
        }

        /// The time on a day from today, milliseconds since 1970.
        func milliseconds(day: Int, _ time: String) throws -> UInt64 {
            let date = Date(timeIntervalSinceNow: Double(day) * 86_400)
                .formatted(.iso8601.year().month().day())
            let moment = try Date("\(date)T\(time):00Z", strategy: .iso8601)
            return UInt64(moment.timeIntervalSince1970 * 1_000)
        }

        func set(day: Int, _ time: String) throws {
            let now = UInt64(Date().timeIntervalSince1970 * 1_000)
            let offset = Double(try milliseconds(day: day, time) - now) / 1_000
            // The file is replaced, because the process may read it at any time.
            _ = try directory.write("+\(offset)", to: "clock.new")
            #expect(
                rename("\(directory.path)/clock.new", "\(directory.path)/clock") == 0)
        }

        var environment: [String: String] {
            get throws {
                try FakeTime.following("\(directory.path)/clock").merging(["TZ": "UTC"]) { $1 }
            }
        }
    }

    private func start(to endpoint: String, _ more: [String]) throws -> Subprocess {
        let directory = campaign.directory
        return try Broadside.start(
            campaign.arguments(
                to: endpoint,
                [
                    "--tokens", "\(directory.path)/list.csv", "--zone-column", "tz", "--quiet",
                    "22:00-08:00",
                ] + more), in: directory, environment: try clock.environment)
    }

    /// Sends the failed rows again.
    private func resume() throws -> Subprocess {
        try start(
            to: server.endpoint,
            ["--resume", "--retry", "failed,unknown", "--progress", "json"])
    }

    /// Waits until the run waits for its next wave.
    private func waitForPause(_ sending: Subprocess, accepted: Int) throws {
        try sending.wait {
            let last = try String(contentsOfFile: sending.errorsPath, encoding: .utf8)
                .split(separator: "\n").last { $0.contains(#""phase""#) }
            return last?.contains(#""phase":"waiting""#) == true
                && (try? campaign.statistics())?.accepted == accepted
        }
    }

    /// The times at which the rows of each zone were accepted, milliseconds since 1970.
    private func times() throws -> (utc: [UInt64], tokyo: [UInt64]) {
        let rows = try campaign.ledger("export").output.split(separator: "\n").dropFirst()
            .map { $0.split(separator: ",", omittingEmptySubsequences: false) }
        #expect(rows.count == 2_400 && rows.allSatisfy { $0[2] == "accepted" })
        let times = try rows.map { try #require(UInt64($0[8])) }
        return (Array(times[..<1_200]), Array(times[1_200...]))
    }

    @Test func `Rows that are sent again wait until their zone's quiet hours end, as at first`()
        throws
    {
        try clock.set(day: 1, "14:00")
        let sending = try resume()
        defer { sending.stop() }
        try waitForPause(sending, accepted: 1_200)
        // One chunk has rows of both zones.
        #expect(try campaign.statistics().failed == 1_200)
        try clock.set(day: 1, "23:30")
        let again = try sending.wait(limit: 120)
        #expect(again.exitCode == 0, "\(again.errors)")
        let (utc, tokyo) = try times()
        let night = try clock.milliseconds(day: 1, "22:00")
        let morning = try clock.milliseconds(day: 1, "23:00")
        #expect(utc.allSatisfy { $0 < night } && tokyo.allSatisfy { $0 >= morning })
    }

    @Test func `Rows to send again are not lost if a pass ends before it reads them`() throws {
        try clock.set(day: 1, "22:30")
        let sending = try resume()
        defer { sending.stop() }
        try waitForPause(sending, accepted: 0)
        // Tokyo's day passes while the machine is suspended. Now it is day in UTC only.
        try clock.set(day: 2, "13:30")
        try waitForPause(sending, accepted: 1_200)
        try clock.set(day: 2, "23:30")
        let again = try sending.wait(limit: 120)
        #expect(again.exitCode == 0, "\(again.errors)")
        let (utc, tokyo) = try times()
        let evening = try clock.milliseconds(day: 2, "13:00")
        let morning = try clock.milliseconds(day: 2, "23:00")
        #expect(utc.allSatisfy { $0 >= evening && $0 < morning })
        #expect(tokyo.allSatisfy { $0 >= morning })
    }
}
