import BroadsidePayloads
import BroadsideSupport
import BroadsideTestSupport
import Foundation
import Synchronization
import Testing

@testable import BroadsideCampaigns

/// `--payload-by`: lists in which no value has a payload file.
@Suite struct UnmatchedValuesTests {
    /// Options of a campaign with the files `de.json` and `en.json`, and with a default payload.
    private static func options(_ campaign: Campaign, languages: [String]) throws -> SendOptions {
        let texts = "\(campaign.directory.path)/texts"
        try FileManager.default.createDirectory(atPath: texts, withIntermediateDirectories: false)
        for name in ["de", "en"] {
            try campaign.directory.write(Campaign.payload, to: "texts/\(name).json")
        }
        let rows = languages.enumerated().map { "\(hexToken($0)),\($1)\n" }
        var options = SendOptions()
        options.tokens = .file(
            try campaign.directory.write("token,lang\n" + rows.joined(), to: "list.csv"))
        options.payload = campaign.payloadFile
        options.payloadBy = "lang=\(texts)"
        options.topic = Campaign.topic
        options.authKey = campaign.authority.authKey
        options.keyID = Campaign.keyID
        options.teamID = Campaign.teamID
        options.endpoint = "localhost:1"
        options.ledger = campaign.ledger
        options.progress = .none
        return options
    }

    /// The lines that `work` writes to standard error, and its error.
    private static func result(
        _ work: () throws -> Void
    ) throws -> (lines: [String], error: BroadsideError?) {
        let lines = Mutex<[String]>([])
        let host = HostedRun { line in lines.withLock { $0.append(line) } }
        var failure: BroadsideError?
        try HostedRun.$current.withValue(host) {
            do { try work() } catch let error as BroadsideError { failure = error }
        }
        return (lines.withLock { $0 }, failure)
    }

    @Test func `A list of which no value has a payload file causes a warning before it is sent`()
        throws
    {
        let campaign = try Campaign(rows: 1)
        let options = try Self.options(
            campaign, languages: ["", "English", "English"] + Array(repeating: "German", count: 8))
        let result = try Self.result { _ = try CheckedRun(options, spooling: nil) }
        #expect(result.error == nil)
        let warning = result.lines.first { $0.contains("none of the 10 rows that have a value") }
        #expect(
            warning?.contains("(values: 'German', 'English'; files: de.json, en.json)") == true,
            "\(result.lines)")
    }

    @Test(
        arguments: [
            Array(repeating: "fr", count: 9) + ["", " "],
            Array(repeating: "fr", count: 30) + ["de"],
        ])
    func `Nine values without a payload file, or one value with a file, cause no message`(
        languages: [String]
    ) throws {
        let campaign = try Campaign(rows: 1)
        let options = try Self.options(campaign, languages: languages)
        let result = try Self.result { _ = try CheckedRun(options, spooling: nil) }
        #expect(result.error == nil)
        #expect(!result.lines.contains { $0.contains("payload file") }, "\(result.lines)")
    }

    @Test func `First rows without a payload file cause a warning before a long list is sent`()
        throws
    {
        let campaign = try Campaign(rows: 1)
        let options = try Self.options(
            campaign, languages: Array(repeating: "German", count: 1_100))
        let result = try Self.result { _ = try CheckedRun(options, spooling: nil) }
        #expect(result.error == nil)
        #expect(
            result.lines.count { $0.contains("none of the first 1,000 rows") } == 1,
            "\(result.lines)")
    }

    @Test func `A dry run of a long list warns only if no value of the whole list has a file`()
        throws
    {
        for last in ["German", "de"] {
            let campaign = try Campaign(rows: 1)
            var options = try Self.options(
                campaign, languages: Array(repeating: "German", count: 1_100) + [last])
            options.isDryRun = true
            let result = try Self.result {
                _ = try DryRun.run(CheckedRun(options, spooling: nil))
            }
            #expect(result.error == nil)
            #expect(
                result.lines.count { $0.contains("none of the 1,101 rows") }
                    == (last == "de" ? 0 : 1),
                "\(result.lines)")
        }
    }
}
