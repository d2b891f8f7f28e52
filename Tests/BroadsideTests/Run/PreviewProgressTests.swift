import BroadsidePayloads
import Testing

@testable import BroadsideCampaigns

/// Which requests a preview shows.
@Suite struct PreviewProgressTests {
    private func shape(payload: UInt16 = 0, topic: UInt8 = 0, arm: UInt8 = 0)
        -> PayloadRenderer.Shape
    {
        var shape = PayloadRenderer.Shape()
        (shape.template, shape.topic, shape.arm) = (payload, topic, arm)
        return shape
    }

    @Test func `A request is wanted until its payload is shown as often as asked for`() {
        var progress = PreviewProgress(
            limit: 2, payloads: ["a", "b"], arms: [], hasTopics: false)
        for _ in 0..<2 {
            #expect(progress.isWanted(shape(topic: 1)))
            progress.noteShown(shape(topic: 1))
        }
        #expect(!progress.isWanted(shape(topic: 2)))
        #expect(progress.isWanted(shape(payload: 1)))
        #expect(progress.needsMore)
        #expect(progress.unseen(in: "the list") == ["no row of the list gets b"])
    }

    @Test func `With rows that name their topics, requests of each topic are wanted`() {
        var progress = PreviewProgress(limit: 1, payloads: ["a"], arms: [], hasTopics: true)
        progress.noteShown(shape())
        #expect(!progress.isWanted(shape()))
        #expect(progress.isWanted(shape(topic: 1)))
        #expect(!progress.lacksRequests)
        #expect(progress.needsMore, "further topics may follow")
    }

    @Test func `Requests of each arm are wanted, except of the holdout`() {
        var progress = PreviewProgress(
            limit: 1, payloads: ["a"], arms: ["one", "holdout", "two"], hasTopics: false)
        progress.noteShown(shape(arm: 1))
        #expect(!progress.isWanted(shape(arm: 2)))
        #expect(progress.isWanted(shape(arm: 3)))
        #expect(progress.lacksRequests)
        #expect(progress.unseen(in: "the list") == ["no row of the list is in arm two"])
        progress.noteShown(shape(arm: 3))
        #expect(!progress.needsMore)
    }
}
