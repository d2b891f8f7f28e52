import Testing

@testable import BroadsideRows

@Suite struct RowChunkTests {
    @Test func `A chunk that grew for a long row is an ordinary one for the next`() {
        let chunk = RowChunk()
        let memory = chunk.storage
        chunk.reset()
        #expect(!chunk.isLarge && chunk.storage == memory)
        chunk.grow(keeping: 0)
        #expect(chunk.isLarge)
        chunk.reset()
        #expect(!chunk.isLarge && chunk.storedCount == 0)
    }
}
