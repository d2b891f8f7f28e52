import BroadsideLedgerFormat
import BroadsideSupport
import BroadsideTestSupport
import Foundation
import Testing

@testable import BroadsideLedgers

/// Reading a ledger of hundreds of millions of rows ends where somebody wants the run to stop.
struct InterruptedReadingTests {
    @Test func `A pending signal ends the reading of a ledger for a run`()
        throws
    {
        let path = FileManager.default.temporaryDirectory.path + "/\(UUID())"
        let directory = try LedgerDirectory.create(path)
        defer { try? FileManager.default.removeItem(atPath: path) }
        try Data("no segment".utf8).write(to: URL(fileURLWithPath: path + "/segment-0001-00"))
        var manifest = Manifest(
            campaign: 7,
            identity: CampaignIdentity(
                listByteCount: 9, listFormat: "lines", columns: ["token"], payloadSHA256: "",
                topic: nil, pushType: "alert", priority: 10, expiration: nil, collapseID: nil,
                environment: "production", shard: nil, suppressSHA256: nil),
            firstStartedAtMilliseconds: 1, listPath: nil)
        _ = manifest.beginEpoch(atMilliseconds: 1)
        /// What becomes of reading it.
        func code() throws -> LedgerError.Code? {
            do throws(LedgerError) {
                _ = try LedgerSummary(
                    LedgerIndex(segments: try! directory.segments(), manifest: manifest))
                return nil
            } catch { return error.code }
        }
        let sound = try code()
        var (patient, impatient, taken) = (sound, sound, sound)
        let stillWaits = try withWaitingStop {
            patient = try code()
            directory.patience.endsOnSignals = true
            impatient = try code()
            SignalWatch.takeStop()
            taken = try code()
        }
        #expect(!stillWaits)
        #expect(sound != .interrupted && patient == sound && taken == sound)
        #expect(impatient == .interrupted)
        #expect(LedgerReader.unreadable(LedgerError(.interrupted), directory).exitCode == 3)
    }
}
