import BroadsideHygiene
import BroadsideLedgerFormat
import BroadsideTestSupport
import Foundation
import Testing

@testable import BroadsideLedgers

/// What a directory is taken for: by the lock's text and the manifest, whatever else is in it.
@Suite(.timeLimit(.minutes(60)))
struct LedgerContentTests {
    private let directory: TemporaryDirectory

    init() throws { directory = try TemporaryDirectory() }

    private func content(_ files: [String: String]) throws -> LedgerDirectory.Content {
        let path = directory.fresh("ledger")
        try FileManager.default.createDirectory(atPath: path, withIntermediateDirectories: false)
        for (name, text) in files {
            try text.write(toFile: "\(path)/\(name)", atomically: false, encoding: .utf8)
        }
        return try LedgerDirectory.unlocked(path).content()
    }

    private static let prepared = "broadside ledger\n"

    @Test func `File names alone make no ledger of a directory`() throws {
        #expect(try content([:]) == .nothing)
        for name in ["tokens", "skips", ".tokens.new", "telemetry.json", "epoch"] {
            #expect(try content([name: ""]) == .foreign, "\(name)")
            #expect(try content([name: "", "lock": ""]) == .foreign, "\(name)")
            #expect(try content([name: "", "lock": "4711\n"]) == .foreign, "\(name)")
        }
        #expect(try content(["manifest.json": "{}"]) == .foreign)
        #expect(try content(["manifest.json": "{}", "lock": "4711\n"]) == .foreign)
    }

    @Test func `A lock file with the mark of preparation proves that nothing was sent`() throws {
        let lock = ["lock": Self.prepared]
        #expect(try content(lock) == .preparation(isProven: true))
        for name in ["tokens", "skips", ".manifest.json.new"] {
            let files = lock.merging([name: ""]) { $1 }
            #expect(try content(files) == .preparation(isProven: true), "\(name)")
        }
        #expect(try content(lock.merging(["letter": ""]) { $1 }) == .foreign)
        #expect(try content(["lock": ""]) == .preparation(isProven: false))
    }

    @Test func `A lock file with other content, or a segment, shows a campaign`() throws {
        for text in ["begun\n", "beg", "\0\0"] {
            let lock = ["lock": Self.prepared + text]
            #expect(try content(lock) == .lostManifest)
            #expect(try content(lock.merging(["tokens": ""]) { $1 }) == .lostManifest)
            #expect(try content(lock.merging(["manifest.json": ""]) { $1 }) == .ledger)
        }
        #expect(try content(["segment-0001-00": ""]) == .lostManifest)
        #expect(try content(["manifest.copy": ""]) == .lostManifest)
        #expect(try content(["segment-0001-00": "", "manifest.json": ""]) == .ledger)
    }

    @Test func `The lock file shows a campaign as soon as its manifest is saved`() throws {
        let path = directory.fresh("ledger")
        let ledger = try LedgerDirectory.openForRun(path, resumes: true)
        #expect(try ledger.content() == .preparation(isProven: true))
        let manifest = Manifest(
            campaign: 1,
            identity: CampaignIdentity(
                listByteCount: 1, listFormat: "lines", columns: [], payloadSHA256: "",
                topic: nil, pushType: "alert", priority: 10, expiration: nil, collapseID: nil,
                environment: "production", shard: nil, suppressSHA256: nil),
            firstStartedAtMilliseconds: 1, listPath: nil)
        try ledger.save(manifest)
        #expect(try ledger.content() == .ledger)
        try FileManager.default.removeItem(atPath: "\(path)/manifest.json")
        try FileManager.default.removeItem(atPath: "\(path)/manifest.copy")
        #expect(try ledger.content() == .lostManifest)
        // Without the signed lock a manifest that can be read is enough: earlier versions' have none.
        try ledger.save(manifest)
        try FileManager.default.removeItem(atPath: "\(path)/lock")
        #expect(try ledger.content() == .ledger)
    }
}
