import BroadsideLedgerFormat
import BroadsideSupport
import Testing

@testable import BroadsideEngine
@testable import BroadsideObservability

@Suite struct CampaignLabelTests {
    private func problem(_ text: String) -> String? {
        do throws(BroadsideError) {
            _ = try CampaignLabel.parse(text)
            return nil
        } catch {
            return error.message
        }
    }

    @Test func `A label is a key and a value`() throws {
        let label = try CampaignLabel.parse("_team9=news=sport, \"late\"")
        #expect(label.key == "_team9" && label.value == "news=sport, \"late\"")
        let longest = String(repeating: "k", count: 64) + "=" + String(repeating: "v", count: 200)
        #expect(problem(longest) == nil)
    }

    @Test(
        arguments: [
            ("country", "write KEY=VALUE"), ("=de", "can't be a key"), ("9a=x", "can't be a key"),
            ("a-b=x", "can't be a key"), ("\u{e9}=x", "can't be a key"),
            (String(repeating: "k", count: 65) + "=x", "can't be a key"),
            ("le=x", "reserved"), ("campaign=x", "reserved"), ("__a=x", "reserved"),
            ("a=", "1 to 200 bytes"), ("a=b\nc", "1 to 200 bytes"),
            ("a=" + String(repeating: "v", count: 201), "1 to 200 bytes"),
        ])
    func `A label that metrics cannot carry is refused`(text: String, words: String) {
        #expect(problem(text)?.contains(words) == true, "\(problem(text) ?? "")")
    }

    @Test func `The number of labels has a limit`() throws {
        var labels: [String: String] = [:]
        for number in 1...16 { labels["k\(number)"] = "v" }
        try CampaignLabel.check(labels)
        labels["one_more"] = "v"
        #expect(throws: BroadsideError.self) { try CampaignLabel.check(labels) }
    }

    @Test func `Each metric's own label is reserved, and each sample has the campaign's`()
        throws
    {
        var snapshot = RunSnapshot()
        snapshot.campaign = "0123456789abcdef"
        snapshot.name = "evening"
        snapshot.rows = 1
        snapshot.counts.reasons.add(text: "Unregistered", count: 1)
        snapshot.labels = ["country": "de", "team": "a \"b\""]
        let text = MetricsText(
            snapshot, use: ProcessUse(cpuMicroseconds: 1, peakResidentBytes: 2)
        ).text
        var count = 0
        for line in text.split(separator: "\n") where !line.hasPrefix("#") {
            count += 1
            #expect(line.contains(#"country="de""#) && line.contains(#"team="a \"b\"""#), "\(line)")
            for label in line.matches(of: /[{,]([a-z_]+)="/) {
                let key = String(label.1)
                #expect(snapshot.labels[key] != nil || CampaignLabel.reservedKeys.contains(key))
            }
        }
        #expect(count > 30)
        let json = snapshot.json.object
        #expect(json.contains(#""labels":{"country":"de","team":"a \"b\""}"#), "\(json)")
    }

    @Test func `Each line of the JSON log has the labels`() {
        var log = EventLog(
            .json, progress: .auto, campaign: "0123456789abcdef", name: nil,
            labels: ["country": "de"])
        let event = RunEvent(.connectionLost, .info, "x", milliseconds: 0)
        #expect(log.lines(for: event, now: 0)[0].contains(#""labels":{"country":"de"},"#))
    }
}
