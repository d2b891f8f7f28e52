import BroadsideAPNs
import BroadsideEngine
import BroadsideHPACK
import BroadsideHTTP2
import BroadsideLedgerFormat
import BroadsidePolicy
import BroadsideRows

/// The parts of a notification's way that need no kernel, each alone, so that their instructions can
/// be counted: `parts NAME COUNT` does the work of COUNT notifications and says a checksum.
///
/// `Benchmarks/run --part parts` runs each under callgrind with two counts; the difference is what
/// one costs, whatever else the machine does.
@main
enum Parts {
    static let all: [(name: String, work: @Sendable (Int) -> UInt64)] = [
        ("row-lines", { Lists.read(.lines, rows: $0) }),
        ("row-csv", { Lists.read(.csv, rows: $0) }),
        ("row-jsonl", { Lists.read(.jsonl, rows: $0) }),
        ("request-strict", { Requests.write($0, .strict) }),
        ("request-compact", { Requests.write($0, .compact) }),
        ("request-template", { Requests.layDown($0) }),
        ("response-plain", { Responses.read($0, huffman: false) }),
        ("response-huffman", { Responses.read($0, huffman: true) }),
        ("ledger", { Records.append($0) }),
        ("pace", { Pacing.pace($0) }),
        ("export", { StoredLedger().export($0, .csv) }),
        ("export-jsonl", { StoredLedger().export($0, .jsonl) }),
        ("verify", { StoredLedger().verify($0) }),
        ("merge", { StoredLedger().merge($0) }),
    ]

    static func main() {
        let arguments = CommandLine.arguments
        guard arguments.count == 3, let count = Int(arguments[2]), count > 0,
            let part = all.first(where: { $0.name == arguments[1] })
        else {
            print("usage: parts \(all.map(\.name).joined(separator: "|")) COUNT")
            return
        }
        print(part.work(count))
    }
}

/// A cheap way to look at every result, so that no work is left out.
struct Checksum {
    private(set) var value: UInt64 = 0xcbf2_9ce4_8422_2325

    mutating func take(_ number: UInt64) {
        value = (value ^ number) &* 0x0000_0100_0000_01b3
    }
}

let tokenDigits = 64

/// The cutter, the row reader and the judgement of the token.
enum Lists {
    static func read(_ format: ListFormat, rows: Int) -> UInt64 {
        let piece = text(format, rows: 1000)
        let pool = ChunkPool(limit: 3)
        let header = Array("name,token,city".utf8)
        guard let layout = try? RowLayout(format: format, names: ["token"], header: header) else {
            fatalError("the lists here have a column named token")
        }
        // As a run cuts its list: with all checks.
        var cutter = RowSplitter(layout: layout, pool: pool)
        var reader: RowReader?
        var checksum = Checksum()
        if format.hasHeader { feed(header + [0x0a], &cutter, &reader, &checksum) }
        for _ in 0..<max(1, rows / 1000) { feed(piece, &cutter, &reader, &checksum) }
        if let last = cutter.finish() { look(at: last, pool, &reader, &checksum) }
        return checksum.value

        func feed(
            _ bytes: [UInt8], _ cutter: inout RowSplitter, _ reader: inout RowReader?,
            _ checksum: inout Checksum
        ) {
            var offset = 0
            while case .chunk(let chunk) = cutter.next(bytes.span.bytes, at: &offset) {
                look(at: chunk, pool, &reader, &checksum)
            }
        }

        func look(
            at chunk: RowChunk, _ pool: ChunkPool,
            _ reader: inout RowReader?, _ checksum: inout Checksum
        ) {
            if reader == nil { reader = RowReader(layout: layout) }
            read(chunk, &reader!, &checksum)
            if let chunk = reader!.close() { pool.giveBack(chunk) }
        }
    }

    private static func read(
        _ chunk: RowChunk, _ reader: inout RowReader, _ checksum: inout Checksum
    ) {
        let room = UnsafeMutableRawBufferPointer.allocate(byteCount: 256, alignment: 8)
        defer { room.deallocate() }
        reader.open(chunk)
        while reader.next() != nil {
            var digits = OutputRawSpan(buffer: room, initializedCount: 0)
            let isToken = TokenText.canonicalize(reader.text(reader.field(0)), into: &digits)
            checksum.take(UInt64(digits.finalize(for: room)) + (isToken ? 1 : 0))
        }
    }

    static func text(_ format: ListFormat, rows: Int) -> [UInt8] {
        var state: UInt64 = 7
        var text = ""
        for row in 0..<rows {
            var token = ""
            for _ in 0..<4 {
                state = state &* 6_364_136_223_846_793_005 &+ 1_442_695_040_888_963_407
                let word = String(state, radix: 16, uppercase: row % 2 == 0)
                token += String(repeating: "0", count: 16 - word.count) + word
            }
            switch format {
            case .lines: text += token + "\n"
            case .csv, .semicolonCSV: text += "Ada,\(token),\"Paris, France\"\n"
            case .tsv: text += "Ada\t\(token)\tParis\n"
            case .jsonl: text += "{\"name\":\"Ada\",\"token\":\"\(token)\",\"city\":\"Paris\"}\n"
            }
        }
        return Array(text.utf8)
    }
}

/// Requests from a template, and the template itself.
enum Requests {
    static func fields(version: UInt32 = 1) -> [RequestField] {
        func field(_ name: RequestFieldName, _ text: String, _ revision: UInt32 = 0) -> RequestField
        {
            RequestField(name, .constant(Array(text.utf8)), revision: revision)
        }
        return [
            field(.method, "POST"), field(.scheme, "https"), RequestField(.path, .hole(count: 0)),
            field(.authority, "api.push.apple.com"),
            field(.authorization, "bearer " + String(repeating: "e", count: 184), version),
            field(.topic, "com.example.app"), field(.pushType, "alert"),
            RequestField(.identifier, .hole(count: 36)), field(.priority, "10"),
        ]
    }

    static func write(_ count: Int, _ indexingPolicy: IndexingPolicy) -> UInt64 {
        var mirror = DynamicTableMirror()
        let payload = [UInt8](repeating: 0x7b, count: 242)
        // The first request fills the server's table, later ones use it.
        _ = RequestBlockEncoder.encode(
            fields(), mirror: &mirror, indexingPolicy: indexingPolicy, huffman: true)
        let block = RequestBlockEncoder.encode(
            fields(), mirror: &mirror, indexingPolicy: indexingPolicy, huffman: true)
        let template = RequestTemplate(block: block, payload: payload)
        defer { template.deallocate() }
        let output = UnsafeMutableRawBufferPointer.allocate(byteCount: 16_384, alignment: 64)
        defer { output.deallocate() }
        let token = UnsafeMutableRawBufferPointer.allocate(byteCount: tokenDigits, alignment: 64)
        defer { token.deallocate() }
        token.initializeMemory(as: UInt8.self, repeating: 0x61)
        var checksum = Checksum()
        var at = 0
        for row in 0..<count {
            if at + template.requestCountLimit > output.count { at = 0 }
            at += template.write(
                token: UnsafeRawBufferPointer(token), row: UInt64(row),
                streamID: UInt32(truncatingIfNeeded: 2 * row + 1), to: output.baseAddress! + at)
            checksum.take(UInt64(at))
        }
        return checksum.value
    }

    static func layDown(_ count: Int) -> UInt64 {
        var checksum = Checksum()
        let fields = fields()
        for _ in 0..<count {
            var mirror = DynamicTableMirror()
            let block = RequestBlockEncoder.encode(fields, mirror: &mirror, huffman: true)
            checksum.take(UInt64(block.bytes.count))
        }
        return checksum.value
    }
}

/// A hundred answers of APNs' form at a time, read by the client's state machine.
enum Responses {
    private static let together = 100

    static func read(_ count: Int, huffman: Bool) -> UInt64 {
        var machine = ClientConnectionStateMachine(
            configuration: .init(maxStreams: 1000, gateUntilFirstResponse: false))
        machine.start()
        var checksum = Checksum()
        // The server's preface: empty SETTINGS.
        drain(&machine, [0, 0, 0, 4, 0, 0, 0, 0, 0], &checksum)
        let frame = frame(huffman: huffman)
        var answers = [UInt8]()
        for _ in 0..<together { answers += frame }
        for _ in 0..<max(1, count / together) {
            for place in 0..<together {
                let id = machine.openStream(tag: UInt32(place), payloadCount: 0)
                for byte in 0..<4 {
                    answers[place * frame.count + 5 + byte] =
                        UInt8(truncatingIfNeeded: id >> UInt32(24 - 8 * byte))
                }
            }
            drain(&machine, answers, &checksum)
        }
        return checksum.value
    }

    private static func drain(
        _ machine: inout ClientConnectionStateMachine, _ bytes: [UInt8], _ checksum: inout Checksum
    ) {
        var offset = 0
        while let event = machine.nextEvent(in: bytes.span.bytes, at: &offset) {
            guard case .response(let tag, let status) = event else { continue }
            checksum.take(UInt64(tag) << 16 | UInt64(status))
        }
    }

    /// HEADERS with `:status 200` and an apns-id, and the stream's end.
    private static func frame(huffman: Bool) -> [UInt8] {
        let strings = ["apns-id", "EABEAE54-14A8-11E5-B60B-1697F925EC7B"].map { Array($0.utf8) }
        var block: [UInt8] = [0x88, 0x00]
        for string in strings {
            var coded: [UInt8] = []
            if huffman { Huffman.encode(string, into: &coded) } else { coded = string }
            block.append(UInt8(coded.count) | (huffman ? 0x80 : 0))
            block += coded
        }
        return [0, 0, UInt8(block.count), 1, 5, 0, 0, 0, 0] + block
    }
}

/// Verdicts into the ledger's blocks, as they are for a 200.
enum Records {
    static func append(_ count: Int) -> UInt64 {
        var writer = LedgerWriter(campaign: 7, epoch: 1, reactor: 0)
        var checksum = Checksum()
        for row in 0..<count {
            writer.accepted(
                row: UInt64(row), fingerprint: UInt64(row) &* 0x9e37_79b9_7f4a_7c15, attempts: 1,
                nowMilliseconds: 1_700_000_000_000 + UInt64(row / 1000))
            guard writer.pendingByteCount >= 32_768 else { continue }
            while let write = writer.nextWrite() {
                checksum.take(write.offset)
                writer.writeCompleted(write.bytes.count)
            }
        }
        checksum.take(writer.appendedPosition)
        return checksum.value
    }
}

/// One look at the pace and one request taken from it, each a little later than the one before.
enum Pacing {
    static func pace(_ count: Int) -> UInt64 {
        var rateLimiter = RateLimiter(milliRate: 50_000_000, now: 0)
        var now: UInt64 = 0
        var checksum = Checksum()
        for _ in 0..<count {
            now += 20_000
            let allowed = rateLimiter.allowance(now: now)
            if allowed > 0 { rateLimiter.take(1, now: now) }
            checksum.take(UInt64(allowed))
        }
        return checksum.value
    }
}
