@testable import BroadsideHPACK
import Testing

/// Apple's present text: constant headers in the table, the provider token never.
@Suite struct CurrentDisciplineTests {
    typealias Compact = CompactDisciplineTests

    static func request(
        id: Int, bearer: [UInt8] = Compact.bearer, version: UInt32 = 1
    ) -> [RequestField] {
        let fields = Compact.request(id: id, bearer: bearer, version: version)
        // The order of vector V09.
        let order: [RequestFieldName] = [
            .method, .scheme, .path, .authority, .authorization, .identifier, .pushType,
            .expiration, .priority, .topic,
        ]
        return order.map { name in fields.first { $0.name == name }! }
    }

    static func encode(
        _ fields: [RequestField], _ mirror: inout DynamicTableMirror, huffman: Bool = false
    ) -> [UInt8] {
        Compact.encode(fields, &mirror, .current, huffman: huffman)
    }

    @Test func `The first two current requests are the reference's bytes`() {
        var mirror = DynamicTableMirror()
        let first = Self.encode(Self.request(id: 1), &mirror)
        #expect(first == Vectors.tokenFirst)
        #expect(first.count == 436 && mirror.size == 348)
        let warm = mirror.generation
        let second = Self.encode(Self.request(id: 2), &mirror)
        #expect(second == Vectors.tokenSecond)
        #expect(second.count == 320 && mirror.generation == warm)
    }

    @Test func `A renewed provider token leaves the table of a current connection as it is`() throws
    {
        let inflater = ReferenceInflater()
        var mirror = DynamicTableMirror()
        for version in 1...40 as ClosedRange<UInt32> {
            let bearer = Array("bearer \(String(repeating: "\(version % 7)", count: 184))".utf8)
            let fields = Self.request(id: Int(version % 3) + 1, bearer: bearer, version: version)
            let block = Self.encode(fields, &mirror, huffman: version % 2 == 0)
            #expect(try inflater.inflate(block) == fields.map(Compact.plain))
            #expect(inflater.tableSize == mirror.size && mirror.size == 348)
            #expect(mirror.index(of: .authorization) == nil)
        }
    }

    @Test func `Each field of a current request is in the table at most once, and decodes`() throws
    {
        try Compact.checkSmallTables([0, 100, 200, 300, 4096], .current) { Self.request(id: $0) }
    }
}
