@testable import BroadsideHPACK
import Testing

/// Constant fields and provider tokens in the table: exact bytes, renewals, and nghttp2's inflater
/// as the judge.
@Suite struct CompactDisciplineTests {
    /// The provider token in the reference's vectors: "bearer " and what follows, from the first
    /// request of V10, where it is a literal of 191 bytes.
    static let bearer: [UInt8] = {
        let block = Vectors.compactFirst
        let head = hex("577f40")
        let start = (0..<block.count - 3).first { Array(block[$0..<$0 + 3]) == head }! + 3
        return Array(block[start..<start + 191])
    }()

    static func hex(_ text: String) -> [UInt8] { Vectors.hex(text) }

    static func request(
        id: Int, bearer: [UInt8] = bearer, version: UInt32 = 1
    ) -> [RequestField] {
        func field(_ name: RequestFieldName, _ text: String) -> RequestField {
            RequestBlockEncoderTests.field(name, text)
        }
        return [
            field(.method, "POST"), field(.scheme, "https"),
            field(.path, "/3/device/\(RequestBlockEncoderTests.token)"),
            field(.authority, "api.sandbox.push.apple.com"),
            RequestField(.authorization, .constant(bearer), revision: version),
            field(.topic, "com.example.MyApp"), field(.pushType, "alert"),
            field(.priority, "10"), field(.expiration, "0"),
            // Another value in each request, as its revision says.
            RequestField(
                .identifier, .constant(Array(RequestBlockEncoderTests.ids[id - 1].utf8)),
                revision: UInt32(id)),
        ]
    }

    static func encode(
        _ fields: [RequestField], _ mirror: inout DynamicTableMirror,
        _ policy: IndexingPolicy = .compact, huffman: Bool = false
    ) -> [UInt8] {
        RequestBlockEncoder.encode(
            fields, mirror: &mirror, indexingPolicy: policy, huffman: huffman
        ).bytes
    }

    @Test func `The first two compact requests are the reference's bytes`() {
        var mirror = DynamicTableMirror()
        let first = Self.encode(Self.request(id: 1), &mirror)
        #expect(first == Vectors.compactFirst)
        #expect(first.count == 435 && mirror.size == 584)
        let warm = mirror.generation
        let second = Self.encode(Self.request(id: 2), &mirror)
        #expect(second == Vectors.compactSecond)
        #expect(second.count == 123 && mirror.generation == warm)
    }

    @Test func `A renewed provider token is inserted and shifts each index`() throws {
        let inflater = ReferenceInflater()
        var mirror = DynamicTableMirror()
        _ = try inflater.inflate(Self.encode(Self.request(id: 1), &mirror))
        let before = mirror.layout
        let renewed = Self.bearer.reversed() as [UInt8]
        let fields = Self.request(id: 2, bearer: renewed, version: 2)
        let block = Self.encode(fields, &mirror)
        // Before it :authority is 68; behind it the rest is one higher than in V10.
        #expect(block.contains([0xc4, 0x57, 0x7f, 0x40]))
        #expect(mirror.size == 820)
        #expect(mirror.layout != before)
        #expect(mirror.index(of: .identifier) == 63 && mirror.index(of: .authority) == 69)
        #expect(try inflater.inflate(block) == fields.map(Self.plain))
        let third = Self.encode(Self.request(id: 3, bearer: renewed, version: 2), &mirror)
        #expect(third.count == 123 && third.contains([0xc5, 0xbe, 0xc3, 0xc2, 0xc1, 0xc0, 0x0f]))
        #expect(try inflater.inflate(third).count == 10)
    }

    @Test func `A compact table evicts nothing after 40 provider token renewals`() throws {
        let inflater = ReferenceInflater()
        var mirror = DynamicTableMirror()
        var sizes: [Int] = []
        for version in 1...40 as ClosedRange<UInt32> {
            let bearer = Array("bearer \(String(repeating: "\(version % 7)", count: 184))".utf8)
            for id in 1...3 {
                let fields = Self.request(id: id, bearer: bearer, version: version)
                let block = Self.encode(fields, &mirror, huffman: id == 2)
                #expect(try inflater.inflate(block) == fields.map(Self.plain))
                #expect(inflater.tableSize == mirror.size && mirror.size <= 4096)
                if id == 3 { sizes.append(block.count) }
            }
        }
        // 584 bytes and 14 renewals of 236 fill the table; from then on the token is a literal,
        // and all others are still where they were.
        #expect(sizes[14] == 123 && sizes[15] == 123 + 195 - 1)
        #expect(sizes[15...].allSatisfy { $0 == sizes[15] })
        #expect(mirror.index(of: .authority) == 62 + 20)
    }

    @Test func `A smaller table takes only the entries that fit, and nghttp2 decodes each request`()
        throws
    {
        try Self.checkSmallTables([0, 100, 300, 400], .compact) { Self.request(id: $0) }
    }

    /// Encodes three requests for tables of each size, and has nghttp2 decode them.
    static func checkSmallTables(
        _ limits: [Int], _ policy: IndexingPolicy, request: (Int) -> [RequestField]
    ) throws {
        for limit in limits {
            let inflater = ReferenceInflater()
            var mirror = DynamicTableMirror()
            mirror.limit(capacity: limit)
            inflater.changeLimit(limit)
            for id in 1...3 {
                let fields = request(id)
                let block = encode(fields, &mirror, policy)
                #expect(try inflater.inflate(block) == fields.map(plain))
                #expect(inflater.tableSize == mirror.size && mirror.size <= limit)
            }
        }
    }

    /// Long random conversations, with renewals and changing limits.
    @Test(arguments: 0..<60 as Range<UInt64>, [IndexingPolicy.compact, .current])
    func `nghttp2 decodes random conversations in which renewals and table limits change`(
        seed: UInt64, policy: IndexingPolicy
    ) throws {
        var random = SeededRandom(seed: seed)
        let inflater = ReferenceInflater()
        var mirror = DynamicTableMirror()
        let values = RequestFieldName.allCases.map { _ in
            Self.text(Int.random(in: 0...90, using: &random), &random)
        }
        var version: UInt32 = 1
        var token = Self.text(191, &random)
        for _ in 0..<80 {
            switch Int.random(in: 0..<20, using: &random) {
            case 0:
                let limit = [0, 60, 300, 600, 1000, 4096].randomElement(using: &random)!
                mirror.limit(capacity: limit)
                inflater.changeLimit(limit)
            case 1...3:
                version += 1
                token = Self.text(191, &random)
            default: break
            }
            var names = RequestFieldName.allCases.filter { _ in Bool.random(using: &random) }
            names.shuffle(using: &random)
            let fields = names.map { name in
                switch name {
                case .authorization:
                    RequestField(name, .constant(token), revision: version)
                case .identifier, .path:
                    // Another one each time, as a constant so that the judge sees it.
                    RequestField(
                        name, .constant(Self.text(36, &random)),
                        revision: .random(in: 1 ... .max, using: &random))
                default:
                    RequestField(name, .constant(values[Int(name.rawValue)]))
                }
            }
            let block = Self.encode(fields, &mirror, policy, huffman: Bool.random(using: &random))
            #expect(try inflater.inflate(block) == fields.map(Self.plain))
            #expect(inflater.tableSize == mirror.size)
        }
    }

    private static func text(_ count: Int, _ random: inout SeededRandom) -> [UInt8] {
        (0..<count).map { _ in UInt8.random(in: 33...126, using: &random) }
    }

    static func plain(_ field: RequestField) -> PlainField {
        guard case .constant(let bytes) = field.value else { fatalError("no holes here") }
        return PlainField(
            name: field.name.text.description, value: String(decoding: bytes, as: UTF8.self))
    }
}
