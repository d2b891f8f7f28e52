import BroadsideAPNs
import BroadsideHPACK
import BroadsideHTTP2
import BroadsideLedgerFormat
import BroadsidePolicy
import BroadsideSupport
import Testing

@testable import BroadsideEngine

/// What is laid down once for many requests.
@Suite struct RequestTemplateTests {
    private func settings() -> ReactorSettings {
        ReactorSettings(
            campaign: 7, authority: Array("api.push.apple.com".utf8),
            topic: Array("com.example.app".utf8), pushType: Array("alert".utf8), priority: nil,
            expiration: nil, collapseIdentifier: nil, payload: Array(#"{"aps":{}}"#.utf8),
            connections: 1, streamsPerConnection: 10, milliRatePerConnection: nil,
            usesProviderToken: true, onLost: .record, retryPolicy: RetryPolicy(),
            requestTimeout: second, giveUpAfter: second, giveUpAfterIsExplicit: true,
            abortAfter: 1, reactors: 1, seed: 1)
    }

    private let bearer = Array(("bearer " + String(repeating: "eyJh", count: 40)).utf8)

    @Test func `Constant fields are Huffman-coded, in every kind of request`() {
        let settings = settings()
        let texts = [settings.authority, settings.topic!, bearer, Array("apns-push-type".utf8)]
        func count(_ isPersonal: Bool, huffman: Bool) -> Int {
            var mirror = DynamicTableMirror()
            let fields = settings.fields(
                authorization: bearer, version: 1, personalCollapseCount: isPersonal ? 10 : nil,
                personalLength: isPersonal)
            return RequestBlockEncoder.encode(
                fields, mirror: &mirror, indexingPolicy: settings.indexingPolicy, huffman: huffman
            ).bytes.count
        }
        var mirror = DynamicTableMirror()
        let (template, _) = settings.template(
            authorization: (bearer, 1), mirror: &mirror)
        defer { template.deallocate() }
        let frames = 2 * RequestTemplate.frameHeaderCount
        let path = 1 + RequestTemplate.pathPrefix.utf8CodeUnitCount + RowSlab.tokenDigitsLimit
        let plainBlock = template.requestCountLimit - frames - path - settings.payload.count
        #expect(plainBlock == count(false, huffman: true))
        let saved = count(false, huffman: false) - count(false, huffman: true)
        #expect(saved > texts.reduce(0) { $0 + $1.count } / 8)

        var other = DynamicTableMirror()
        let (personal, _) = settings.personalTemplate(
            authorization: (bearer, 1), collapseCount: 10, mirror: &other)
        defer { personal.deallocate() }
        let room = NotificationHeaders.maximumCollapseIDCount + DecimalText.limit
        let personalBlock = personal.countLimit - frames - path - room
        #expect(personalBlock <= count(true, huffman: true))
        #expect(count(true, huffman: false) - personalBlock >= saved)
    }

    @Test(arguments: [
        (0, "0"), (9, "9"), (10, "10"), (99, "99"), (100, "100"), (1_234, "1234"), (4_096, "4096"),
        (10_000, "10000"), (99_999_999, "99999999"),
    ])
    func `A content-length is written with as many digits as it has`(number: Int, digits: String) {
        var room = [UInt8](repeating: 0xff, count: DecimalText.limit + 1)
        let count = room.withUnsafeMutableBytes {
            DecimalText.write(number, to: $0.baseAddress!)
        }
        #expect(count == digits.utf8.count + 1 && count <= DecimalText.limit)
        var expected: [UInt8] = [UInt8(digits.utf8.count)]
        expected += digits.utf8
        #expect(Array(room.prefix(count)) == expected)
        #expect(room[count...].allSatisfy { $0 == 0xff })
    }

    private final class Laid: PrecomputedRequest {
        var deallocations = 0
        func deallocate() { deallocations += 1 }
    }

    @Test func `Templates are limited, and each is given back once`() throws {
        var mirror = DynamicTableMirror()
        settings().template(authorization: (bearer, 1), mirror: &mirror).template.deallocate()
        let layout = try #require(mirror.layout)
        func key(_ version: UInt32, _ hasCollapse: Bool = false) -> TemplateKey {
            TemplateKey(
                layout: layout, authorizationVersion: version, hasPersonalCollapse: hasCollapse)
        }
        var cache = TemplateCache<Laid>()
        let limit = TemplateCache<Laid>.limit
        let laid = (0...limit).map { _ in Laid() }
        for (version, template) in laid.enumerated() {
            cache.insert(template, for: key(UInt32(version)))
            #expect(cache.count == min(version + 1, limit))
        }
        #expect(limit == 16 && laid.map(\.deallocations) == [1] + Array(repeating: 0, count: 16))
        #expect(cache.template(for: key(0)) == nil && cache.template(for: key(1)) === laid[1])
        #expect(cache.template(for: key(1, true)) == nil)
        cache.removeAll(olderThan: 5)
        #expect(cache.count == limit - 4 && cache.template(for: key(4)) == nil)
        #expect(cache.template(for: key(5)) === laid[5])
        cache.deallocate()
        #expect(laid.allSatisfy { $0.deallocations == 1 })
    }

    @Test(arguments: [0, 1, 10, 64])
    func `A row's own collapse ID is written at its place in the template`(
        collapseCount: Int
    ) throws {
        var mirror = DynamicTableMirror()
        let (template, _) = settings().personalTemplate(
            authorization: (bearer, 1), collapseCount: collapseCount, mirror: &mirror)
        defer { template.deallocate() }
        var tracer = FrameTracer(isClient: false)
        // The first request fills the table that the second may use; tokens of 32 and 100 bytes.
        for (place, digits) in [64, 200].enumerated() {
            let token = [UInt8](repeating: 0x61, count: digits)
            let collapse = (0..<collapseCount).map { UInt8(0x41 + ($0 + place) % 26) }
            var output = [UInt8](repeating: 0, count: template.countLimit + 3)
            let count = token.withUnsafeBytes { token in
                collapse.withUnsafeBytes { collapse in
                    output.withUnsafeMutableBytes { output in
                        template.write(
                            token: token, row: 7, collapse: collapse,
                            streamID: UInt32(2 * place + 1), dataCount: 3, payloadCount: 3,
                            to: output.baseAddress!)
                    }
                }
            }
            #expect(count <= template.countLimit)
            let sent = Array(output[..<count]) + [0x7b, 0x7d, 0x20]
            var frames: [TracedFrame] = []
            tracer.take(sent.span.bytes) { frames.append($0) }
            try #require(frames.count == 2)
            let fields = try #require(frames[0].fields).map {
                (String(decoding: $0.name, as: UTF8.self), $0.value)
            }
            #expect(frames[0].header.streamID == UInt32(2 * place + 1))
            #expect(
                fields.first { $0.0 == ":path" }?.1
                    == Array(RequestTemplate.pathPrefix.description.utf8) + token)
            let named = fields.first { $0.0 == "apns-collapse-id" }?.1
            #expect(named == (collapseCount == 0 ? nil : collapse))
            #expect(frames[1].header.type == .data && frames[1].payload == [0x7b, 0x7d, 0x20])
        }
    }
}
