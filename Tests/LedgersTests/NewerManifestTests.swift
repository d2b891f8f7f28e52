import BroadsideHygiene
import BroadsideLedgerFormat
import BroadsideSupport
import BroadsideTestSupport
import Foundation
import Testing

@testable import BroadsideLedgers

/// A ledger that is read while a run begins: its segments are newer than the manifest that was read.
@Suite(.timeLimit(.minutes(60)))
struct NewerManifestTests {
    private let place: TemporaryDirectory
    private let ledger: LedgerDirectory
    private var path: String { "\(place.path)/ledger" }

    init() throws {
        place = try TemporaryDirectory()
        ledger = try LedgerDirectory.create("\(place.path)/ledger")
        try ledger.save(
            Manifest(
                campaign: 0x0123_4567_89ab_cdef,
                identity: CampaignIdentity(
                    listByteCount: 1, listFormat: "lines", columns: [], payloadSHA256: "",
                    topic: nil, pushType: "alert", priority: 10, expiration: nil, collapseID: nil,
                    environment: "production", shard: nil, suppressSHA256: nil),
                firstStartedAtMilliseconds: 0, listPath: nil))
        try run(1)
    }

    /// Begins a run as a run does: into the manifest, then its segments, then that they are made.
    private func run(_ number: UInt32) throws {
        var manifest = try ledger.readManifest()
        let epoch = manifest.beginEpoch(atMilliseconds: UInt64(number))
        #expect(epoch == number)
        manifest.recordRunShape(isInListOrder: true, segmentCount: 1)
        try ledger.save(manifest)
        try makeSegment(epoch)
        manifest.recordCreatedSegments()
        try ledger.save(manifest)
    }

    private func makeSegment(_ epoch: UInt32) throws {
        let descriptor = try ledger.createSegment(epoch: epoch, reactor: 0)
        defer { close(descriptor) }
        try ledger.writeHeader(
            descriptor, campaign: try ledger.readManifest().campaignNumber, epoch: epoch, reactor: 0
        )
    }

    /// What a reader that was opened before finds.
    private func read(_ reader: LedgerReader) throws(BroadsideError) {
        #expect(try reader.verify().hasPrefix("sound: 0 rows"))
        try reader.export(tokens: nil, format: .csv, states: []) { _ in }
        let token = String(repeating: "ab", count: 32)
        #expect(try reader.find(notificationID: nil, token: token, tokens: nil).isEmpty)
    }

    @Test func `Runs begun after the manifest was read are no damage`() throws {
        let reader = try LedgerReader(path: path)
        for number in 2...4 {
            try run(UInt32(number))
            try read(reader)
            let (manifest, segments) = try ledger.segments(knownTo: reader.manifest)
            #expect(manifest.epochs.count == number && segments.count == number)
        }
    }

    @Test func `A segment that no manifest knows is damage to each reader`() throws {
        let reader = try LedgerReader(path: path)
        try makeSegment(2)
        let error = #expect(throws: BroadsideError.self) { try read(reader) }
        #expect(error?.exitCode == 5)
        #expect(error?.message.contains("segment-0002-00") == true)
        #expect(error?.message.contains("ledger repair") == true)
    }

    @Test func `Another campaign's manifest does not count as a newer one`() throws {
        let reader = try LedgerReader(path: path)
        try FileManager.default.removeItem(atPath: "\(path)/segment-0001-00")
        var other = Manifest(
            campaign: 1, identity: reader.manifest.identity, firstStartedAtMilliseconds: 0,
            listPath: nil)
        for number in 1...2 { _ = other.beginEpoch(atMilliseconds: UInt64(number)) }
        try ledger.save(other)
        for number in 1...2 { try makeSegment(UInt32(number)) }
        #expect(throws: BroadsideError.self) { try read(reader) }
    }
}
