@testable import BroadsideHPACK
import Testing

@Suite struct RequestBlockEncoderTests {
    static let token = "00fc13adff785122b4ad28809a3420982341241421348097878e577c991de8f0"
    static let ids = [
        "eabeae54-14a8-11e5-b60b-1697f925ec7b", "123e4567-e89b-12d3-a456-4266554400a0",
        "9f3c1d2e-0b7a-4c55-8e21-6d4f0a9b8c7d",
    ]

    static func field(_ name: RequestFieldName, _ text: String) -> RequestField {
        RequestField(name, .constant(Array(text.utf8)))
    }

    /// The example request, with the collapse ID where it is asked for.
    static func request(
        id: Int, host: RequestFieldName = .authority, collapse: String? = nil,
        collapseFirst: Bool = false
    ) -> [RequestField] {
        let collapseField = collapse.map { [field(.collapseIdentifier, $0)] } ?? []
        return [
            field(.method, "POST"), field(.scheme, "https"), field(.path, "/3/device/\(token)"),
            field(host, "api.development.push.apple.com"),
        ] + (collapseFirst ? collapseField : []) + [
            field(.identifier, ids[id - 1]), field(.expiration, "0"),
        ] + (collapseFirst ? [] : collapseField) + [field(.priority, "10")]
    }

    static func encode(
        _ fields: [RequestField], _ mirror: inout DynamicTableMirror, huffman: Bool = false
    ) -> [UInt8] {
        RequestBlockEncoder.encode(fields, mirror: &mirror, huffman: huffman).bytes
    }

    @Test
    func `The first and second strict requests are the vectors' bytes for host and :authority`() {
        for (host, first, second) in [
            (RequestFieldName.host, Vectors.hostFirst, Vectors.hostSecond),
            (.authority, Vectors.first, Vectors.second),
        ] {
            var mirror = DynamicTableMirror()
            let one = Self.encode(Self.request(id: 1, host: host), &mirror)
            #expect(one == first)
            #expect(mirror.size == 123)
            let warm = mirror.generation
            let two = Self.encode(Self.request(id: 2, host: host), &mirror)
            #expect(two == second)
            #expect(mirror.size == 123)
            #expect(mirror.generation == warm)
        }
    }

    @Test
    func `A collapse ID that first occurs in a later request is inserted behind the other entries`()
    {
        var mirror = DynamicTableMirror()
        _ = Self.encode(Self.request(id: 1), &mirror)
        let second = Self.encode(Self.request(id: 2, collapse: "score-42"), &mirror)
        #expect(second == Vectors.collapseSecond)
        #expect(mirror.size == 179)
        let third = Self.encode(Self.request(id: 3, collapse: "score-43"), &mirror)
        #expect(third == Vectors.collapseThird)
        #expect(mirror.index(of: .identifier) == 64)
        #expect(mirror.index(of: .expiration) == 63)
        #expect(mirror.index(of: .collapseIdentifier) == 62)
    }

    /// An insertion shifts the references behind it in the same block.
    @Test func `A collapse ID in front of other fields shifts their indexes in the same block`() {
        var mirror = DynamicTableMirror()
        _ = Self.encode(Self.request(id: 1), &mirror)
        let second = Self.encode(
            Self.request(id: 2, collapse: "score-42", collapseFirst: true), &mirror)
        #expect(second == Vectors.collapseBefore)
    }

    @Test func `The first and second requests in Huffman code are the vectors' bytes`() {
        var mirror = DynamicTableMirror()
        let first = Self.encode(Self.request(id: 1), &mirror, huffman: true)
        #expect(first == Vectors.huffmanFirst)
        let second = Self.encode(Self.request(id: 2), &mirror, huffman: true)
        #expect(second == Vectors.huffmanSecond)
    }

    @Test
    func `A hole is where the value belongs, and a filled block equals one encoded with values`()
        throws
    {
        var mirror = DynamicTableMirror()
        var fields = Self.request(id: 1)
        fields[2].value = .hole(count: 74)
        fields[4].value = .hole(count: 36)
        var block = RequestBlockEncoder.encode(fields, mirror: &mirror, huffman: false)
        let path = try #require(block.hole(.path))
        let id = try #require(block.hole(.identifier))
        #expect(block.hole(.topic) == nil)
        #expect(block.holes.map(\.name) == [.path, .identifier])
        block.bytes.replaceSubrange(path, with: Array("/3/device/\(Self.token)".utf8))
        block.bytes.replaceSubrange(id, with: Array(Self.ids[0].utf8))
        #expect(block.bytes == Vectors.first)
        #expect(mirror.size == 123)
    }

    @Test func `nghttp2 decodes other methods, empty values and values of 300 bytes`() throws {
        let inflater = ReferenceInflater()
        var mirror = DynamicTableMirror()
        let bearer = String(repeating: "x", count: 300)
        for huffman in [false, true] {
            let fields = [
                Self.field(.method, "GET"), Self.field(.scheme, "http"),
                Self.field(.authorization, bearer), Self.field(.topic, "com.example.MyApp"),
                Self.field(.pushType, "alert"), Self.field(.collapseIdentifier, ""),
            ]
            let block = Self.encode(fields, &mirror, huffman: huffman)
            #expect(block[0] == 0x82)
            #expect(
                try inflater.inflate(block) == [
                    PlainField(name: ":method", value: "GET"),
                    PlainField(name: ":scheme", value: "http"),
                    PlainField(name: "authorization", value: bearer),
                    PlainField(name: "apns-topic", value: "com.example.MyApp"),
                    PlainField(name: "apns-push-type", value: "alert"),
                    PlainField(name: "apns-collapse-id", value: ""),
                ])
            #expect(inflater.tableSize == mirror.size)
        }
    }

    /// What nghttp2's decoder makes of long random conversations is what was meant, and its table is
    /// as large as the mirror says.
    @Test(arguments: 0..<50 as Range<UInt64>)
    func `nghttp2 decodes random strict conversations, and its table is as large as the mirror's`(
        seed: UInt64
    ) throws {
        var random = SeededRandom(seed: seed)
        let inflater = ReferenceInflater()
        var mirror = DynamicTableMirror()
        for _ in 0..<60 {
            if Int.random(in: 0..<12, using: &random) == 0 {
                let limit = [0, 60, 100, 130, 200, 4096, 70_000].randomElement(using: &random)!
                mirror.limit(capacity: limit)
                inflater.changeLimit(limit)
            }
            var names = RequestFieldName.allCases.filter { _ in Bool.random(using: &random) }
            names.shuffle(using: &random)
            let fields = names.map { name in
                let count = Int.random(
                    in: 0...(Bool.random(using: &random) ? 8 : 200), using: &random)
                let value = (0..<count).map { _ in UInt8.random(in: 33...126, using: &random) }
                return RequestField(name, .constant(value))
            }
            let generation = mirror.generation
            let layout = mirror.layout
            let block = Self.encode(fields, &mirror, huffman: Bool.random(using: &random))
            let decoded = try inflater.inflate(block)
            #expect(decoded == fields.map(plain))
            #expect(inflater.tableSize == mirror.size)
            if mirror.generation == generation { #expect(mirror.layout == layout) }
        }
    }

    private func plain(_ field: RequestField) -> PlainField {
        guard case .constant(let bytes) = field.value else { fatalError("no holes here") }
        return PlainField(
            name: field.name.text.description, value: String(decoding: bytes, as: UTF8.self))
    }
}

/// SplitMix64: the same numbers for the same seed everywhere.
struct SeededRandom: RandomNumberGenerator {
    private var state: UInt64

    init(seed: UInt64) { state = seed }

    mutating func next() -> UInt64 {
        state &+= 0x9e37_79b9_7f4a_7c15
        var mixed = state
        mixed = (mixed ^ (mixed >> 30)) &* 0xbf58_476d_1ce4_e5b9
        mixed = (mixed ^ (mixed >> 27)) &* 0x94d0_49bb_1331_11eb
        return mixed ^ (mixed >> 31)
    }
}
