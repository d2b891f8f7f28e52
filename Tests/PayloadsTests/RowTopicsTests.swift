import BroadsideAPNs
import Testing

@testable import BroadsidePayloads

@Suite struct RowTopicsTests {
    private func number(_ finding: RowTopics.Finding) -> Int? {
        guard case .number(let number) = finding else { return nil }
        return Int(number)
    }

    @Test func `A topic has the same number for all who ask, and keeps it`() {
        let topics = RowTopics(pushType: .alert)
        #expect(number(topics.find(Array("com.example.a".utf8))) == 0)
        #expect(number(topics.find(Array("com.example.b".utf8))) == 1)
        #expect(number(topics.find(Array("com.example.a".utf8))) == 0)
        #expect(topics.text(1) == Array("com.example.b".utf8))
        #expect(topics.names == ["com.example.a", "com.example.b"])
    }

    @Test func `The 257th topic gets no number, and those before it still have theirs`() {
        let topics = RowTopics(pushType: .alert)
        for index in 0..<RowTopics.limit {
            #expect(number(topics.find(Array("com.example.a\(index)".utf8))) == index)
        }
        guard case .tooMany = topics.find(Array("com.example.more".utf8)) else {
            Issue.record("there is a 257th")
            return
        }
        #expect(number(topics.find(Array("com.example.a255".utf8))) == 255)
        #expect(topics.names.count == 256)
    }

    @Test func `Topics that are only checked have no limit`() {
        let topics = RowTopics(pushType: .alert, onlyChecks: true)
        for index in 0..<RowTopics.limit {
            #expect(number(topics.find(Array("com.example.a\(index)".utf8))) == index)
        }
        guard case .unnumbered = topics.find(Array("com.example.more".utf8)) else {
            Issue.record("it has a number, or is refused")
            return
        }
        guard case .malformed = topics.find(Array("com example".utf8)) else {
            Issue.record("it is a topic")
            return
        }
    }

    @Test(arguments: [
        "", "com example", "com.example\n", "é", "com.example.voip-ptt",
        "com.example.push-type.liveactivity", String(repeating: "a", count: 256),
    ])
    func `What is no topic of an alert gets no number`(text: String) {
        guard case .malformed = RowTopics(pushType: .alert).find(Array(text.utf8)) else {
            Issue.record("it has a number")
            return
        }
    }

    @Test func `A topic needs the ending of its push type`() {
        let topics = RowTopics(pushType: .voip)
        guard case .malformed = topics.find(Array("com.example.a".utf8)) else {
            Issue.record("it has a number")
            return
        }
        #expect(number(topics.find(Array("com.example.a.voip".utf8))) == 0)
        #expect(number(RowTopics(pushType: .alert).find(Array("com.example.a.voip".utf8))) == 0)
    }
}
