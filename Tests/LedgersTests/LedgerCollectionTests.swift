import BroadsideLedgerFormat
import BroadsideSupport
import BroadsideTestSupport
import Foundation
import Testing

@testable import BroadsideLedgers

/// Ledgers that are found in directories which a user names.
struct LedgerCollectionTests {
    private let directory: TemporaryDirectory

    init() throws { directory = try TemporaryDirectory() }

    private func path(_ name: String) -> String { "\(directory.path)/\(name)" }

    @discardableResult
    private func makeLedger(_ name: String) throws -> String {
        try FileManager.default.createDirectory(
            atPath: (path(name) as NSString).deletingLastPathComponent,
            withIntermediateDirectories: true)
        let ledger = try LedgerDirectory.create(path(name))
        try ledger.save(
            Manifest(
                campaign: 7,
                identity: CampaignIdentity(
                    listByteCount: 9, listFormat: "lines", columns: ["token"], payloadSHA256: "",
                    topic: nil, pushType: "alert", priority: 10, expiration: nil, collapseID: nil,
                    environment: "production", shard: nil, suppressSHA256: nil),
                firstStartedAtMilliseconds: 1, listPath: nil))
        return path(name)
    }

    private func makeFolder(_ name: String) throws {
        try FileManager.default.createDirectory(
            atPath: path(name), withIntermediateDirectories: true)
    }

    @Test func `The nights of several campaigns are found beside ledgers above them`() throws {
        let paths = [
            try makeLedger("news/2026-11-27"), try makeLedger("news/2026-11-28"),
            try makeLedger("offers/eu/2026-11-28"), try makeLedger("single"),
        ]
        try directory.write("page", to: "news/index.html")
        try makeFolder("texts/of/nobody")
        try makeFolder("offers/drafts")
        let collection = try LedgerCollection([directory.path], option: nil)
        #expect(collection.paths == paths)
        // The highest directory without a ledger is named, not those in it.
        #expect(collection.leftOut == [path("offers/drafts"), path("texts")])
    }

    @Test func `Ledgers below the lowest level are not found, and their directory is named`() throws
    {
        try makeLedger("a/b/c/d")
        let shallow = try makeLedger("x/y/z")
        let collection = try LedgerCollection([directory.path], option: nil)
        #expect(collection.paths == [shallow])
        #expect(collection.leftOut == [path("a")])
        #expect(try LedgerCollection([path("a")], option: nil).paths == [path("a/b/c/d")])
    }

    @Test func `Ledgers inside ledgers, hidden directories and remains of a merge do not count`()
        throws
    {
        let outer = try makeLedger("nights/outer")
        try makeLedger("nights/outer/shard-0000")
        try makeLedger("nights/.snapshot/outer")
        let unfinished = try UnfinishedLedger(at: path("nights/merged"))
        try makeLedger(
            "nights/" + (unfinished.directory.path as NSString).lastPathComponent + "/shard-0000")
        let collection = try LedgerCollection([directory.path], option: nil)
        #expect(collection.paths == [outer])
    }

    @Test func `A run's note has no hidden directory, and none of its own ledger`() throws {
        try makeLedger("news/2026-11-27")
        for name in ["camps/a/b/c/d", ".snapshot/x", "own/today", "owner"] { try makeFolder(name) }
        let collection = try LedgerCollection([directory.path], option: "history")
        let note = "skipped (no ledger): \(path("camps")), "
        #expect(collection.note(outside: nil) == note + "\(path("own")), \(path("owner"))")
        #expect(collection.note(outside: path("own/today")) == note + path("owner"))
    }

    @Test func `A tree without a ledger is refused`() throws {
        try makeFolder("a/b")
        try directory.write("text", to: "a/b/notes")
        let error = #expect(throws: BroadsideError.self) {
            try LedgerCollection([directory.path], option: "history")
        }
        #expect(error?.exitCode == 2)
        #expect(
            error?.message.hasSuffix(
                "is neither a ledger nor a directory of ledgers (searched 3 levels of directories "
                    + "below it): name a directory nearer to the ledgers") == true)
        #expect(try LedgerCollection([directory.path], option: nil, mayBeEmpty: true).paths == [])
    }
}
