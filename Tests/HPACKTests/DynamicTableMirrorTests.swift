@testable import BroadsideHPACK
import Testing

@Suite struct DynamicTableMirrorTests {
    @Test func `The index of an entry follows the order of insertion`() {
        var mirror = DynamicTableMirror()
        #expect(mirror.index(of: .identifier) == nil)
        mirror.insert(.identifier, valueCount: 36)
        #expect(mirror.size == 75)
        mirror.insert(.expiration, valueCount: 1)
        #expect(mirror.size == 123)
        #expect(mirror.index(of: .identifier) == 63)
        #expect(mirror.index(of: .expiration) == 62)
        mirror.insert(.collapseIdentifier, valueCount: 8)
        #expect(mirror.index(of: .identifier) == 64)
        #expect(mirror.index(of: .path) == nil)
    }

    @Test func `An entry that would evict another is not inserted`() {
        var mirror = DynamicTableMirror(capacity: 100)
        let fits = mirror.insert(.identifier, valueCount: 36)
        #expect(fits)
        let generation = mirror.generation
        let fitsToo = mirror.insert(.expiration, valueCount: 1)
        #expect(!fitsToo)
        #expect(mirror.generation == generation)
        #expect(mirror.index(of: .identifier) == 62)
    }

    @Test func `A lower limit drops the oldest entries and is announced once`() {
        var mirror = DynamicTableMirror()
        mirror.insert(.identifier, valueCount: 36)
        mirror.insert(.expiration, valueCount: 1)
        let full = mirror.generation
        mirror.limit(capacity: 4096)
        mirror.limit(capacity: 8192)
        #expect(mirror.generation == full)
        mirror.limit(capacity: 60)
        #expect(mirror.pendingSizeUpdate == 60)
        #expect(mirror.layout == nil)
        #expect(mirror.index(of: .identifier) == nil)
        #expect(mirror.index(of: .expiration) == 62)
        #expect(mirror.size == 48)
        #expect(mirror.generation != full)
        mirror.limit(capacity: 4096)
        #expect(mirror.capacity == 60)

        let due = mirror.generation
        let method = [RequestField(.method, "POST")]
        let first = RequestBlockEncoder.encode(method, mirror: &mirror, huffman: false)
        #expect(first.bytes == [0x3f, 60 - 31, 0x83])
        #expect(mirror.generation != due)
        let second = RequestBlockEncoder.encode(method, mirror: &mirror, huffman: false)
        #expect(second.bytes == [0x83])
    }

    @Test func `Two mirrors have equal layouts exactly if the same names have the same indexes`() {
        var one = DynamicTableMirror()
        var other = DynamicTableMirror()
        #expect(one.layout == other.layout)
        one.insert(.identifier, valueCount: 36)
        #expect(one.layout != other.layout)
        other.insert(.expiration, valueCount: 1)
        #expect(one.layout != other.layout)
        one.insert(.expiration, valueCount: 10)
        other.insert(.identifier, valueCount: 36)
        #expect(one.generation == other.generation)
        #expect(one.layout != other.layout)
        var third = DynamicTableMirror()
        third.insert(.identifier, valueCount: 20)
        third.insert(.expiration, valueCount: 1)
        #expect(third.layout == one.layout)
    }

    @Test func `Mirrors with different revisions of the provider token have different layouts`() {
        func layout(_ revision: UInt32) -> DynamicTableMirror.Layout? {
            var mirror = DynamicTableMirror()
            mirror.insert(.authorization, valueCount: 200, revision: revision)
            return mirror.layout
        }
        #expect(layout(3) == layout(3))
        #expect(layout(3) != layout(4))
    }

    @Test func `An empty table's layout differs from that of each table with one entry`() {
        let empty = DynamicTableMirror().layout
        for name in RequestFieldName.allCases {
            var mirror = DynamicTableMirror()
            mirror.insert(name, valueCount: 1)
            #expect(mirror.layout != empty, "\(name)")
        }
        // Whether nothing was ever inserted or the peer's limit dropped it.
        var emptied = DynamicTableMirror()
        emptied.insert(.identifier, valueCount: 36)
        emptied.limit(capacity: 0)
        _ = RequestBlockEncoder.encode(
            [RequestField(.method, "POST")], mirror: &emptied, huffman: false)
        #expect(emptied.layout == empty)
    }
}
