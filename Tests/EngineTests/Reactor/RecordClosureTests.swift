import BroadsideHygiene
import BroadsideLedgerFormat
import BroadsideLists
import BroadsidePolicy
import BroadsideRing
import BroadsideRows
import BroadsideSupport
import Testing

@testable import BroadsideEngine

/// A record layer that passes bytes unchanged, ends with a byte of its own, and encrypts nothing after
/// it.
private struct ClosingRecords: RecordLayer, ~Copyable {
    static let lastByte: UInt8 = 0xee

    private var records = TransparentRecords(configuration: ())
    private var isClosed = false

    let isEstablished = true
    var closedEarly: RecordLayerError? { nil }

    init(configuration: Void) {}

    mutating func receive(
        _ input: RawSpan, at offset: inout Int, plaintext: inout OutputRawSpan,
        ciphertext: inout OutputRawSpan
    ) -> RecordLayerResult {
        records.receive(input, at: &offset, plaintext: &plaintext, ciphertext: &ciphertext)
    }

    mutating func seal(_ plaintext: RawSpan, ciphertext: inout OutputRawSpan) -> Bool {
        !isClosed && records.seal(plaintext, ciphertext: &ciphertext)
    }

    mutating func close(ciphertext: inout OutputRawSpan) {
        isClosed = true
        ciphertext.append(Self.lastByte)
    }

    static func sealedCount(_ plaintextCount: Int) -> Int { plaintextCount }
}

/// The message that closes the record layer (close_notify in TLS, RFC 8446 section 6.1).
@Suite(.timeLimit(.minutes(60)))
struct RecordClosureTests {
    /// GOAWAY with NO_ERROR, the last frame of a client that is done.
    private let goodbye = ScriptedServer.goAway(lastStream: 0, code: 0, reason: nil)

    private struct Outcome {
        /// All bytes that the client sent.
        var sent: [UInt8] = []
        var isFinished = false
        var failures: UInt64 = 0
    }

    /// Sends one row on one connection. Bytes from the server arrive before the end of a send.
    ///
    /// - Parameters:
    ///   - reply: The server's bytes after the request, which is on stream 1.
    ///   - replyToEnd: The server's bytes after GOAWAY.
    private func run(reply: [UInt8], replyToEnd: [UInt8] = []) throws -> Outcome {
        var now = ScriptedRun.start
        let coordinator = RunCoordinator(
            authorization: nil, issuedAt: now.wallMilliseconds / 1000, milliRate: nil,
            abortAfter: 50, maxBadTokensPercent: 50,
            rowsRead: InvalidRowsGuard(maximumPercent: 100), sign: nil)
        let pool = ChunkPool(reactors: 1)
        let source = try ListSource(
            list: TokenList(lines: Array("\(ScriptedRun.token(0))\n".utf8)), pool: pool, plan: nil,
            selection: ListSelection(rows: CampaignRows(selection: .all, limit: nil)))
        var machine = ReactorStateMachine<ClosingRecords>(
            settings: ScriptedRun.settings, coordinator: coordinator, reactor: 0,
            recordConfiguration: (),
            ledger: LedgerWriter(campaign: ScriptedRun.campaign, epoch: 1, reactor: 0),
            chunkPool: pool, layout: .lines, seed: 7, now: now)
        let server = ScriptedServer()
        var outcome = Outcome()
        var incoming: [UInt8] = []
        var completions: [ReactorCompletion] = []
        for _ in 0..<1000 where !machine.isFinished {
            if !incoming.isEmpty {
                let bytes = incoming
                incoming = []
                machine.received(connection: 0, bytes: bytes.span.bytes, now: now)
            } else {
                let ended = completions
                completions = []
                for completion in ended { machine.completed(completion, now: now) }
            }
            machine.exchangeWithRun(now)
            machine.runIteration(now)
            machine.finishIteration(now)
            while let submission = machine.nextSubmission() {
                switch submission {
                case .resolve:
                    completions.append(.resolved(.success([.v4(0x0a00_0001, port: 443)])))
                case .requestChunk(let rowLimit):
                    if let chunk = try? source.next(rowLimit: rowLimit) {
                        completions.append(.chunk(chunk))
                    } else {
                        completions.append(.listEnded)
                    }
                case .connect: completions.append(.connected(connection: 0, errno: 0))
                case .receive: incoming += ScriptedServer.settings(maxStreams: 1000)
                case .send(_, let bytes):
                    completions.append(.sent(connection: 0, result: bytes.count))
                    outcome.sent += bytes
                    for event in server.take(Array(bytes)) {
                        switch event {
                        case .request: incoming += reply
                        case .goAway: incoming += replyToEnd
                        case .settings: incoming += ScriptedServer.settingsAcknowledgement
                        case .ping, .data: break
                        }
                    }
                case .close: completions.append(.closed(connection: 0))
                case .write(let bytes, _): completions.append(.wrote(result: bytes.count))
                case .sync: completions.append(.synced(result: 0))
                }
            }
            let due = max(machine.nextDeadline, now.nanoseconds + 1000)
            let step = min(due - now.nanoseconds, second)
            now = Now(
                nanoseconds: now.nanoseconds + step,
                wallMilliseconds: now.wallMilliseconds + step / millisecond)
        }
        outcome.isFinished = machine.isFinished
        outcome.failures = machine.statistics.failures
        return outcome
    }

    private let accepted = ScriptedServer.answer(1, status: 200, reason: nil, retryAfter: nil)

    @Test func `A run that is complete closes its connection after GOAWAY`() throws {
        let outcome = try run(reply: accepted)
        #expect(outcome.isFinished && outcome.failures == 0)
        #expect(Array(outcome.sent.suffix(18)) == goodbye + [ClosingRecords.lastByte])
    }

    @Test func `A connection that the server ends with GOAWAY is closed after its last response`()
        throws
    {
        let outcome = try run(
            reply: ScriptedServer.goAway(lastStream: 1, code: 0, reason: nil) + accepted)
        #expect(outcome.isFinished && outcome.failures == 0)
        #expect(Array(outcome.sent.suffix(18)) == goodbye + [ClosingRecords.lastByte])
    }

    @Test func `A PING after the connection was closed gets no reply`() throws {
        let ping = ScriptedServer.frame(type: 6, Array(repeating: 7, count: 8))
        let outcome = try run(reply: accepted, replyToEnd: ping)
        #expect(outcome.isFinished && outcome.failures == 0)
        #expect(outcome.sent.last == ClosingRecords.lastByte)
    }

    @Test func `A connection whose server breaks HTTP/2 ends without being closed`() throws {
        // DATA on stream 0 (RFC 9113, section 6.1).
        let outcome = try run(reply: ScriptedServer.frame(type: 0, [1]))
        #expect(outcome.isFinished && outcome.failures == 1)
        #expect(outcome.sent.last != ClosingRecords.lastByte)
    }
}
