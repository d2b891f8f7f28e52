import BroadsideLegacyGateway
import Testing

@testable import BroadsideSimulator

/// What the feedback service keeps for whom, and how much of it.
@Suite struct FeedbackListsTests {
    private let topic = Array("com.example.app".utf8)

    @Test func `A feedback list is kept by topic, sorted by time, and emptied by reading`() {
        let lists = FeedbackLists()
        let other = Array("com.example.other".utf8)
        lists.add(token: [2], topic: topic, unixSeconds: 20)
        lists.add(token: [1], topic: topic, unixSeconds: 20)
        lists.add(token: [3], topic: topic, unixSeconds: 10)
        // Since when the app is gone is what was seen first.
        lists.add(token: [3], topic: topic, unixSeconds: 30)
        lists.add(token: [9], topic: other, unixSeconds: 1)
        #expect(
            lists.take(topics: [topic]) == [
                FeedbackTuple(unixSeconds: 10, token: [3]),
                FeedbackTuple(unixSeconds: 20, token: [1]),
                FeedbackTuple(unixSeconds: 20, token: [2]),
            ])
        #expect(lists.take(topics: [topic]).isEmpty)
        #expect(lists.take(topics: [topic, other]).map(\.token) == [[9]])
    }

    @Test func `Feedback lists keep no more than their limit, and reading makes room`() {
        let lists = FeedbackLists(limit: 3)
        let other = Array("com.example.other".utf8)
        for byte in 0..<5 as Range<UInt8> {
            lists.add(
                token: [byte], topic: byte.isMultiple(of: 2) ? topic : other, unixSeconds: 7)
        }
        #expect(lists.take(topics: [topic]).map(\.token) == [[0], [2]])
        // Reading makes room again.
        lists.add(token: [8], topic: topic, unixSeconds: 7)
        lists.add(token: [9], topic: topic, unixSeconds: 7)
        lists.add(token: [10], topic: topic, unixSeconds: 7)
        #expect(lists.take(topics: [topic, other]).map(\.token) == [[1], [8], [9]])
        #expect(FeedbackLists.limit == 1_000_000)
    }
}
