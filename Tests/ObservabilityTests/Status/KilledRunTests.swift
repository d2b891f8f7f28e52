import BroadsideLedgerFormat
import BroadsideLedgers
import BroadsideSupport
import BroadsideTestSupport
import Foundation
import Testing

@testable import BroadsideEngine
@testable import BroadsideObservability

/// The counts of a run that has not recorded them: it was killed, or is in progress.
@Suite struct KilledRunTests {
    private let place: TemporaryDirectory
    private var path: String { "\(place.path)/ledger" }

    init() throws { place = try TemporaryDirectory() }

    /// Creates a ledger whose latest run has not recorded its end.
    private func create() throws -> LedgerDirectory {
        let directory = try LedgerDirectory.create(path)
        var manifest = Manifest(
            campaign: 7,
            identity: CampaignIdentity(
                listByteCount: 1, listFormat: "lines", columns: [], payloadSHA256: "",
                topic: nil, pushType: "alert", priority: 10, expiration: nil, collapseID: nil,
                environment: "production", shard: nil, suppressSHA256: nil),
            firstStartedAtMilliseconds: 0, listPath: nil)
        let epoch = manifest.beginEpoch(atMilliseconds: 1)
        manifest.recordRunShape(isInListOrder: true, segmentCount: 1)
        try directory.save(manifest)
        let descriptor = try directory.createSegment(epoch: epoch, reactor: 0)
        defer { close(descriptor) }
        try directory.writeHeader(descriptor, campaign: 7, epoch: epoch, reactor: 0)
        manifest.recordCreatedSegments()
        try directory.save(manifest)
        return directory
    }

    private func write(_ telemetry: Telemetry) throws {
        try Data(telemetry.encoded).write(to: URL(filePath: "\(path)/\(Telemetry.fileName)"))
    }

    /// Telemetry of a run that was sampled after 15 seconds.
    private static func sampled() -> Telemetry {
        var telemetry = Telemetry()
        telemetry.begin(1, atMilliseconds: 1, settings: [])
        var snapshot = RunSnapshot()
        snapshot.elapsedSeconds = 15
        var report = ReactorReport()
        (report.statistics.retries, report.statistics.reconnects) = (9, 2)
        telemetry.take(snapshot, TimeSeries(), report)
        return telemetry
    }

    /// Values of the summary's JSON; nil: null.
    private func values() throws -> [Double?] {
        let json = try JSONSerialization.jsonObject(
            with: Data(LedgerReader(path: path).statistics().json()))
        let object = try #require(json as? [String: Any])
        return ["retries", "reconnects", "elapsed_seconds"].map { object[$0] as? Double }
    }

    @Test func `Counts that a killed run did not record are null`() throws {
        _ = try create()
        #expect(try values() == [nil, nil, nil])
        // An operator's request made the run write its telemetry before its first sample.
        var telemetry = Telemetry()
        telemetry.begin(1, atMilliseconds: 1, settings: [])
        try write(telemetry)
        #expect(try values() == [nil, nil, nil])
        try write(Self.sampled())
        #expect(try values() == [nil, nil, 15])
        // The manifest of this run could not be written.
        telemetry = Self.sampled()
        telemetry.end(outcome: "stopped", cause: nil)
        try write(telemetry)
        #expect(try values() == [9, 2, 15])
    }

    @Test func `Counts of a run in progress are those of its latest sample, null before it`() throws
    {
        let directory = try create()
        #expect(try values() == [nil, nil, nil])
        try write(Self.sampled())
        #expect(try values() == [9, 2, 15])
        withExtendedLifetime(directory) {}
    }

    @Test func `The table of runs has no number of requests for a killed run`() throws {
        let telemetry = Self.sampled()
        let epochs = [1, 2].map { number in
            Manifest.Epoch(number: number, startedAtMilliseconds: UInt64(number))
        }
        var data = ReportPageTests.data(
            .stopped, remaining: 5, telemetry: telemetry, epochs: epochs)
        #expect(data.runs.map(\.retries) == [9, nil])
        data.isInProgress = true
        let rows = ReportPage(data: data).runs.split(separator: "<tr>").dropFirst(2).map { row in
            row.matches(of: /<td[^>]*>([^<]*)<\/td>/).map { String($0.1) }
        }
        #expect(rows.map { $0[5] } == ["", ""], "\(rows)")
        #expect(rows.map { $0[6] } == ["interrupted", "running"], "\(rows)")
    }
}
