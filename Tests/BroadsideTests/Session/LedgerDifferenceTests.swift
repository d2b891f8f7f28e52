import BroadsideLedgerFormat
import BroadsideLedgers
import BroadsideTestSupport
import Foundation
import Testing

@testable import BroadsideCampaigns

/// Folders of earlier ledgers in a campaign's identity: the same one under each of its paths.
@Suite struct LedgerDifferenceTests {
    private let directory: TemporaryDirectory
    /// Folder of a night's ledgers.
    private var folder: String { "\(directory.path)/nights/evening" }

    init() throws {
        directory = try TemporaryDirectory()
        try FileManager.default.createDirectory(
            atPath: "\(folder)/2026-11-20", withIntermediateDirectories: true)
        try FileManager.default.createSymbolicLink(
            atPath: "\(directory.path)/link", withDestinationPath: "nights")
    }

    private func identity(skipDead: [String]? = nil, history: [String]? = nil) -> CampaignIdentity {
        var rules = EarlierRules()
        (rules.skipDead, rules.history) = (skipDead, history)
        return CampaignIdentity(
            listByteCount: 1, listFormat: "lines", columns: ["token"], payloadSHA256: "",
            topic: "app", pushType: "alert", priority: 10, expiration: nil, collapseID: nil,
            environment: "production", shard: nil, suppressSHA256: nil, earlier: rules)
    }

    private func difference(
        _ known: CampaignIdentity, _ own: CampaignIdentity, isDefault: Bool = true
    ) -> String? {
        var options = SendOptions()
        options.skipsOwnDead = isDefault
        return LedgerSession.difference(
            known, own, in: .unlocked("\(folder)/2026-11-20"), options)
    }

    @Test func `A night's own folder is the same one where it was moved, and under its path`() {
        let night = identity(skipDead: [EarlierRules.ownFolder])
        #expect(difference(night, night) == nil)
        // By hand, `send` gets the path, which may lead through a link.
        for path in [folder, "\(directory.path)/link/evening"] {
            let byHand = identity(skipDead: [path])
            #expect(difference(night, byHand, isDefault: false) == nil)
            #expect(difference(byHand, night) == nil)
        }
        // Earlier versions recorded the path that the folder had.
        let moved = identity(skipDead: ["/before/nights/evening"])
        #expect(difference(moved, night) == nil)
        #expect(
            difference(moved, night, isDefault: false)
                == "--skip-dead was /before/nights/evening, now it is the night's own folder")
        #expect(difference(identity(skipDead: ["/before/morning"]), night) != nil)
        #expect(
            difference(night, identity())
                == "--skip-dead was the night's own folder, now it is not set")
    }

    @Test
    func `A night's own folder is asked beside other folders, unless these are none or have it`() {
        var options = SendOptions()
        options.nightFolder = folder
        let others = "\(directory.path)/others"
        for (given, asks) in [
            (nil, true), ([others], true), ([], false), ([folder], false),
            ([others, "\(directory.path)/nights/"], false),
        ] as [([String]?, Bool)] {
            options.skipDead = given
            #expect(options.asksOwnNights == asks, "\(given ?? [])")
        }
        (options.skipDead, options.skipsOwnDead) = ([others], true)
        let names = options.earlierRules?.skipDead?.map { ($0 as NSString).lastPathComponent }
        #expect(names == ["others", EarlierRules.ownFolder])
        // Another campaign's folder may have the same name.
        let known = identity(skipDead: ["/old/evening", EarlierRules.ownFolder])
        options.skipDead = ["/old/evening"]
        #expect(
            LedgerSession.difference(
                known, known, in: .unlocked("\(folder)/2026-11-20"), options) == nil)
    }

    @Test(arguments: [false, true])
    func `If send gets the ledger of another night, the message names night and its date`(
        isNight: Bool
    ) throws {
        if isNight {
            try Data().write(to: URL(filePath: "\(folder)/nights"), options: .withoutOverwriting)
        }
        let message = LedgerSession.otherCampaign(
            .unlocked("\(folder)/2026-11-20"), "the topic was a, now it is b", SendOptions()
        ).message
        #expect(message.contains("the topic was a, now it is b"), "\(message)")
        let advice = "run broadside night with --date 2026-11-20"
        #expect(message.contains(advice) == isNight, "\(message)")
        #expect(message.contains("name another ledger") != isNight, "\(message)")
    }

    @Test func `A folder of --history is the same one under each path that leads to it`() {
        let known = identity(history: ["\(directory.path)/link"])
        #expect(difference(known, identity(history: ["\(directory.path)/nights"])) == nil)
        #expect(difference(known, identity(history: [folder])) != nil)
    }
}
