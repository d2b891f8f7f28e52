import Testing

@testable import BroadsidePolicy

@Suite struct TopicSetTests {
    @Test func `A set has the topics that were taken in, and no others`() {
        var set = TopicSet()
        #expect(set.isEmpty && !set.contains(0))
        let taken: Set<UInt8> = [0, 63, 64, 129, 255]
        for topic in taken { set.insert(topic) }
        #expect(!set.isEmpty)
        for topic in UInt8.min...UInt8.max {
            #expect(set.contains(topic) == taken.contains(topic), "\(topic)")
        }
    }
}
