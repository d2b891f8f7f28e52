import BroadsideLedgerFormat
import BroadsideSupport
import BroadsideTestSupport
import Foundation
import Testing

@testable import BroadsideLedgers

/// What a repair or a merge makes, and what is left of it where it was killed.
struct UnfinishedLedgerTests {
    private let directory: TemporaryDirectory
    private var output: String { "\(directory.path)/output" }

    init() throws { directory = try TemporaryDirectory() }

    private func names() throws -> [String] {
        try FileManager.default.contentsOfDirectory(atPath: directory.path).sorted()
    }

    private func failure(_ body: () throws(BroadsideError) -> Void) -> BroadsideError? {
        do throws(BroadsideError) {
            try body()
            return nil
        } catch {
            return error
        }
    }

    private func manifest() -> Manifest {
        Manifest(
            campaign: 7,
            identity: CampaignIdentity(
                listByteCount: 9, listFormat: "lines", columns: ["token"], payloadSHA256: "",
                topic: nil, pushType: "alert", priority: 10, expiration: nil, collapseID: nil,
                environment: "production", shard: nil, suppressSHA256: nil),
            firstStartedAtMilliseconds: 1, listPath: nil)
    }

    @Test(arguments: [false, true])
    func `A ledger of a killed writer is not at its output path, and no run begins in it`(
        hasSegment: Bool
    ) throws {
        do {
            let unfinished = try UnfinishedLedger(at: output)
            if hasSegment {
                close(try unfinished.directory.createSegment(epoch: 1, reactor: 0))
            }
        }
        let left = try names()
        #expect(left.count == 1 && left[0].hasPrefix("output.") && left[0].hasSuffix(".new"))
        let place = "\(directory.path)/\(left[0])"
        for refused in [
            failure { () throws(BroadsideError) in
                _ = try LedgerDirectory.openForRun(place, resumes: true)
            },
            failure { () throws(BroadsideError) in
                _ = try LedgerDirectory.openForRun(place, resumes: true, begins: false)
            },
            failure { () throws(BroadsideError) in _ = try LedgerReader(path: place) },
            failure { () throws(BroadsideError) in
                _ = try LedgerRepair.run(place, output: output, tokens: nil)
            },
            failure { () throws(BroadsideError) in
                _ = try LedgerMerge.run(output: output, ledgers: [place])
            },
        ] {
            #expect(refused?.exitCode == 2)
            #expect(refused?.message.contains("was interrupted: remove it") == true)
        }
        #expect(try names() == left)
        // Among ledgers it is left out.
        let ledger = try LedgerDirectory.create("\(directory.path)/ledger")
        try ledger.save(manifest())
        let collection = try LedgerCollection([directory.path], option: nil)
        #expect(collection.paths == ["\(directory.path)/ledger"])
        #expect(collection.leftOut == [place])
    }

    @Test func `A finished ledger is at its output path alone`() throws {
        let unfinished = try UnfinishedLedger(at: output)
        try unfinished.directory.save(manifest())
        #expect(try names() != ["output"])
        try unfinished.finish()
        #expect(try names() == ["output"])
        #expect(try LedgerReader(path: output).campaign == "0000000000000007")
        #expect(
            try FileManager.default.contentsOfDirectory(atPath: output).sorted()
                == ["lock", "manifest.copy", "manifest.json"])
    }

    @Test func `A failed write of a ledger leaves nothing and names the output path`() throws {
        let unfinished = try UnfinishedLedger(at: output)
        let place = unfinished.directory.path
        _ = try LedgerDirectory.create("\(place)/part-0001")
        let error = unfinished.discard(BroadsideError("\(place)/manifest.json: no", exitCode: 5))
        #expect(error.message == "\(output)/manifest.json: no" && error.exitCode == 5)
        #expect(try names().isEmpty)
        let nowhere = failure { () throws(BroadsideError) in
            _ = try UnfinishedLedger(at: "\(directory.path)/none/output")
        }
        #expect(nowhere?.message.hasPrefix("--output \(directory.path)/none/output: ") == true)
    }

    @Test func `A file that another process put at the output path stays`() throws {
        let unfinished = try UnfinishedLedger(at: output)
        try unfinished.directory.save(manifest())
        try FileManager.default.createDirectory(
            atPath: output, withIntermediateDirectories: false)
        let refused = failure { () throws(BroadsideError) in try unfinished.finish() }
        #expect(refused?.exitCode == 2)
        #expect(try FileManager.default.contentsOfDirectory(atPath: output).isEmpty)
    }
}
