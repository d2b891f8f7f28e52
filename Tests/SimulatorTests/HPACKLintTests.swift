import BroadsideHPACK
import BroadsideSupport
import Testing

@testable import BroadsideSimulator

@Suite struct HPACKLintTests {
    /// Blocks of one connection, and what each profile says of them.
    struct Case: Sendable {
        let blocks: [String]
        let strict: [String: UInt64]
        let compact: [String: UInt64]
        /// Nil: the same as compact.
        var current: [String: UInt64]?
    }

    static let indexing: [String: UInt64] = [
        ":authority inserted into the table": 1, ":authority indexed": 1,
        "apns-push-type inserted into the table": 1, "apns-push-type indexed": 1,
        "apns-priority inserted into the table": 1, "apns-priority indexed": 1,
    ]

    static let cases = [
        Case(
            blocks: [Vectors.strictFirst, Vectors.strictSecond], strict: [:],
            compact: [
                ":authority a literal, though constant": 2,
                "apns-priority a literal, though constant": 2,
            ]),
        Case(
            blocks: [Vectors.huffmanFirst, Vectors.huffmanSecond], strict: [:],
            compact: [
                ":authority a literal, though constant": 2,
                "apns-priority a literal, though constant": 2,
            ]),
        Case(
            blocks: [Vectors.strictFirst, Vectors.collapseSecond, Vectors.collapseThird],
            strict: [:],
            compact: [
                ":authority a literal, though constant": 3,
                "apns-priority a literal, though constant": 3,
            ]),
        // Profile B obeys the compact discipline: it inserts each constant once.
        Case(
            blocks: [Vectors.indexingFirst, Vectors.indexingSecond], strict: indexing,
            compact: [:]),
        Case(
            blocks: [Vectors.compactFirst, Vectors.compactSecond],
            strict: indexing.merging([
                "authorization inserted into the table": 1, "authorization indexed": 1,
                "apns-topic inserted into the table": 1, "apns-topic indexed": 1,
                "apns-expiration indexed": 1,
            ]) { $1 }, compact: [:],
            current: [
                "authorization inserted into the table": 1, "authorization indexed": 1,
                "apns-expiration indexed": 1,
            ]),
        // Pseudo headers as literals, as the letter of profile A has it.
        Case(
            blocks: [Vectors.literalStatics], strict: [:],
            compact: [
                ":method a literal, though a static entry": 1,
                ":scheme a literal, though a static entry": 1, "host a literal, though constant": 1,
                "apns-priority a literal, though constant": 1,
            ]),
        // :method inserted, and then by its index: the letter of profile B.
        Case(
            blocks: ["42" + "04504f5354" + "87", "be" + "87"],
            strict: [":method a literal, though a static entry": 2],
            compact: [":method a literal, though a static entry": 2], current: [:]),
        // Inserted again.
        Case(
            blocks: ["42" + "04504f5354" + "87", "42" + "04504f5354" + "87"],
            strict: [":method a literal, though a static entry": 2],
            compact: [":method a literal, though a static entry": 2],
            current: [":method a literal, though a static entry": 1]),
        // The provider token inserted.
        Case(
            blocks: ["8387" + "57" + "0178"], strict: ["authorization inserted into the table": 1],
            compact: [:], current: ["authorization inserted into the table": 1]),
        Case(
            blocks: ["8387" + "0f08" + "0178", "8387" + "1f08" + "0178"], strict: [:],
            compact: ["authorization a literal, though constant": 2], current: [:]),
        // apns-id inserted twice.
        Case(
            blocks: [Vectors.strictFirst, Vectors.strictFirst],
            strict: ["apns-id inserted again": 1, "apns-expiration inserted again": 1],
            compact: [
                "apns-id inserted again": 1, "apns-expiration inserted again": 1,
                ":authority a literal, though constant": 2,
                "apns-priority a literal, though constant": 2,
            ]),
        // The path inserted, by its static name index; then :path spelled out.
        Case(
            blocks: ["8387" + "44" + "022f78"], strict: [":path inserted into the table": 1],
            compact: [":path inserted into the table": 1]),
        Case(
            blocks: ["8387" + "00" + "053a70617468" + "022f78"],
            strict: [":path name spelled out though it is in a table": 1],
            compact: [":path name spelled out though it is in a table": 1]),
        // Never indexed is as good as without indexing.
        Case(blocks: ["8387" + "14" + "022f78"], strict: [:], compact: [:]),
        // apns-id without indexing the first time; a reference to nothing; a broken block.
        Case(
            blocks: ["8387" + "00" + "0761706e732d6964" + "0131"],
            strict: ["apns-id not inserted the first time": 1],
            compact: ["apns-id not inserted the first time": 1]),
        Case(
            blocks: ["be"], strict: ["malformed header block": 1],
            compact: ["malformed header block": 1]),
        Case(
            blocks: ["0f2f"], strict: ["malformed header block": 1],
            compact: ["malformed header block": 1]),
        // A table of 80 bytes holds one of two entries.
        Case(
            blocks: [
                "3f31" + "8387" + "40" + "0761706e732d6964" + "0131" + "40"
                    + "0f61706e732d65787069726174696f6e" + "0130"
            ],
            strict: ["entries evicted from the table": 1],
            compact: ["entries evicted from the table": 1]),
    ]

    @Test(arguments: cases) func `Each deviation from an indexing policy is found under its name`(
        _ one: Case
    ) {
        for (profile, expected) in [
            (IndexingPolicy.strict, one.strict), (.compact, one.compact),
            (.current, one.current ?? one.compact),
        ] {
            var lint = HPACKLint(profile: profile)
            var found: UInt64 = 0
            for block in one.blocks {
                if hexBytes(block).withBytes({ lint.check($0) }) != nil { found += 1 }
            }
            var totals = SimulatorTotals()
            totals.add(lint)
            #expect(totals.lintFindings == expected, "\(profile)")
            #expect(totals.lintedBlocks == UInt64(one.blocks.count))
            #expect((found > 0) == !expected.isEmpty)
        }
    }

    /// A day of provider tokens, one after the other: what our encoder does keeps to the rules of its
    /// own discipline and breaks those of the other.
    @Test(arguments: IndexingPolicy.allCases)
    func `Blocks of our encoder over many token renewals deviate only from the other policy`(
        _ indexingPolicy: IndexingPolicy
    ) {
        var mirror = DynamicTableMirror()
        var lints = IndexingPolicy.allCases.map { HPACKLint(profile: $0) }
        for request in 0..<96 {
            let version = UInt32(request / 3)
            let bearer = "bearer " + String(repeating: "\(version % 10)", count: 184)
            let fields = [
                RequestField(.method, "POST"), RequestField(.scheme, "https"),
                RequestField(.path, "/3/device/00"), RequestField(.authority, "localhost"),
                RequestField(.authorization, .constant(Array(bearer.utf8)), revision: version),
                RequestField(.topic, "com.example.app"),
                RequestField(.identifier, .hole(count: 36)),
                RequestField(.priority, "10"),
            ]
            let block = RequestBlockEncoder.encode(
                fields, mirror: &mirror, indexingPolicy: indexingPolicy, huffman: request % 2 == 0)
            for index in lints.indices {
                let profile = IndexingPolicy.allCases[index].rawValue
                let finding = block.bytes.withBytes { lints[index].check($0) }
                if profile == indexingPolicy.rawValue {
                    #expect(finding == nil, "request \(request)")
                } else if request < 30 {
                    #expect(finding != nil, "request \(request)")
                }
            }
        }
    }

    /// A constant that stays a literal though it would fit is found, and only then.
    @Test func `A constant sent as a literal is found only if the table has room for it`() {
        for (limit, expected) in [(100, [:]), (200, ["apns-topic a literal, though constant": 1])]
            as [(Int, [String: UInt64])]
        {
            var block: [UInt8] = []
            PrefixInteger.encode(limit, prefixBits: 5, pattern: 0x20, into: &block)
            // apns-id takes 75 bytes, apns-topic 43.
            block +=
                hexBytes("838740") + [7] + Array("apns-id".utf8) + [36]
                + [UInt8](repeating: 65, count: 36)
            block += [0, 10] + Array("apns-topic".utf8) + [1, 97]
            var lint = HPACKLint(profile: .compact)
            _ = block.withBytes { lint.check($0) }
            var totals = SimulatorTotals()
            totals.add(lint)
            #expect(totals.lintFindings == expected)
        }
    }

    @Test(arguments: [IndexingPolicy.compact, .current])
    func `A literal priority is found only if it is the inserted one`(_ policy: IndexingPolicy) {
        var mirror = DynamicTableMirror()
        var lint = HPACKLint(profile: policy)
        // The campaign's priority is inserted; the second request is of an arm with another one.
        for (own, isFound) in [(nil, false), ("5", false), ("10", true), (nil, false)]
            as [(String?, Bool)]
        {
            let fields = [
                RequestField(.identifier, .hole(count: 36)),
                own.map { RequestField(.priority, .hole(count: $0.utf8.count)) }
                    ?? RequestField(.priority, "10"),
            ]
            var block = RequestBlockEncoder.encode(
                fields, mirror: &mirror, indexingPolicy: policy, huffman: true)
            if let own, let hole = block.hole(.priority) {
                block.bytes.replaceSubrange(hole, with: own.utf8)
            }
            let finding = block.bytes.withBytes { lint.check($0) }
            #expect((finding != nil) == isFound, "\(own ?? "the campaign's"): \(finding as Any)")
        }
    }

    /// Frames cut at every place still give the same blocks.
    @Test func `Header blocks are found although frames are cut at any byte`() {
        let block = hexBytes(Vectors.strictFirst)
        var bytes = Array("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".utf8)
        bytes += frame(4, 0, [])
        // Padded and with priority.
        bytes += frame(1, 0x4 | 0x8 | 0x20, [3, 0, 0, 0, 0, 7] + block + [0, 0, 0])
        bytes += frame(0, 1, Array("{}".utf8))
        // In two frames.
        bytes += frame(1, 0, Array(block[..<100])) + frame(9, 4, Array(block[100...]))
        for size in [1, 2, 3, 7, 10, 50, bytes.count] {
            var scanner = HeaderBlockScanner()
            var found: [[UInt8]] = []
            for start in stride(from: 0, to: bytes.count, by: size) {
                let piece = Array(bytes[start..<min(start + size, bytes.count)])
                piece.withBytes {
                    scanner.scan($0) { block, _ in found.append(Array(block)) }
                }
            }
            #expect(found == [block, block], "pieces of \(size)")
        }
    }

    private func frame(_ type: UInt8, _ flags: UInt8, _ payload: [UInt8]) -> [UInt8] {
        [0, UInt8(payload.count >> 8), UInt8(payload.count & 0xff), type, flags, 0, 0, 0, 1]
            + payload
    }
}
