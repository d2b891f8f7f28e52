import BroadsideLedgerFormat
import BroadsideLegacyGateway
import BroadsideLists
import BroadsidePolicy
import BroadsideRing
import BroadsideRows
import BroadsideSupport
import Testing

@testable import BroadsideEngine

/// A run whose reactors a test drives: no network, no disk, no clock. Connections open and are
/// answered at once unless the test says otherwise; time passes only where all wait for it.
final class ScriptedRun {
    let coordinator: RunCoordinator
    private let source: ListSource
    private(set) var reactors: [Reactor] = []
    private(set) var links: [Link] = []
    private(set) var requests: [ScriptedServer.Request] = []
    /// The places of each row's requests, among so many of them.
    private var ofRow: [Int: [Int]] = [:]
    private var sorted = 0
    /// What legacy gateways were sent, by connection.
    private(set) var notifications: [(link: Int, notification: BinaryNotification)] = []
    private let isBinary: Bool
    /// The ledger's writes: when, nanoseconds since the run began, and whether nothing waited for it.
    private(set) var writes: [(time: UInt64, isQuiet: Bool)] = []
    /// The ledger's syncs, and how often rows of the list were asked for.
    private(set) var syncs = 0
    /// Turns of all reactors.
    private(set) var turns = 0
    private(set) var chunkRequests = 0
    /// How many of them were asked for while others waited, not reserved yet.
    private(set) var asksWhileChunksWait = 0
    /// Provider tokens made, by when, nanoseconds since the run began.
    private(set) var renewals: [UInt64] = []
    /// What reactors told, in the order of their turns.
    private(set) var events: [RunEvent] = []
    /// Nanoseconds since the run began.
    private(set) var time: UInt64 = 0
    /// The answer to each request.
    var reply: (ScriptedServer.Request) -> Reply = { _ in .status(200) }
    /// What becomes of each attempt, by its number.
    var opening: (Int) -> Opening = { _ in .open }
    /// The limit that servers announce.
    var maxStreams: UInt32? = 1000
    /// The window of each stream that servers announce; nil: the default.
    var streamWindow: UInt32?
    var addressCount = 1
    /// Whether the name leads to addresses.
    var resolves = true
    /// How often it was asked for.
    private(set) var resolutions = 0
    /// Name servers never reply.
    var holdsLookups = false
    /// Reads of the list take until the test ends them.
    var holdsReads = false
    private var heldReads: [(reactor: Int, rowLimit: Int)] = []
    /// Changes each chunk of the list before a reactor gets it, as an earlier run's rows would.
    var adjustChunk: (RowChunk) -> Void = { _ in }
    /// Writes of the ledger never come to an end.
    var holdsWrites = false
    /// Sockets never close, so far as the driver says.
    var holdsCloses = false
    /// Syncs take until the test ends them.
    var holdsSyncs = false
    /// Reactors whose sync is in flight.
    private(set) var heldSyncs: [Int] = []
    /// So much later than they ask for it reactors get their turn.
    var lateness: UInt64 = 0

    static let campaign: UInt64 = 0x1234_5678_9abc_def0
    /// Monotonic and wall time of the start.
    static let start = Now(nanoseconds: 1000 * second, wallMilliseconds: 1_800_000_000_000)

    var now: Now {
        Now(
            nanoseconds: Self.start.nanoseconds + time,
            wallMilliseconds: Self.start.wallMilliseconds + time / millisecond)
    }

    /// - Parameters:
    ///   - rows: Rows of the list; the token of row n is n in hexadecimal.
    ///   - text: The list, in place of that.
    ///   - selection: The rows of it that are sent.
    ///   - tokenAge: Seconds since the provider token was made; nil: a client certificate.
    init(
        rows: Int, reactors: Int = 1, connections: Int = 1, tokenAge: UInt64? = nil,
        abortAfter: Int = 50, maxBadTokensPercent: Double = 50, text: String? = nil,
        selection: RowSelection = .all, maxInvalid: Double = 100,
        configure: (inout ReactorSettings) -> Void = { _ in }
    ) throws {
        let issued = Self.start.wallMilliseconds / 1000 - (tokenAge ?? 0)
        let sign: RunCoordinator.Signer = { seconds in Array("bearer \(seconds)".utf8) }
        coordinator = RunCoordinator(
            authorization: tokenAge == nil ? nil : sign(issued), issuedAt: issued,
            milliRate: nil, abortAfter: abortAfter, maxBadTokensPercent: maxBadTokensPercent,
            rowsRead: InvalidRowsGuard(maximumPercent: maxInvalid),
            sign: tokenAge == nil ? nil : sign)
        var settings = Self.settings
        settings.connections = connections
        settings.usesProviderToken = tokenAge != nil
        settings.abortAfter = abortAfter
        settings.reactors = reactors
        configure(&settings)
        isBinary = settings.binary != nil
        let pool = ChunkPool(reactors: reactors)
        let text = text ?? (0..<rows).map { Self.token($0) + "\n" }.joined()
        source = try ListSource(
            list: TokenList(lines: Array(text.utf8)), pool: pool, plan: nil,
            selection: ListSelection(rows: CampaignRows(selection: selection, limit: nil)))
        for reactor in 0..<reactors {
            self.reactors.append(
                Reactor(
                    TransparentReactor(
                        settings: settings, coordinator: coordinator, reactor: reactor,
                        ledger: LedgerWriter(
                            campaign: Self.campaign, epoch: 1, reactor: UInt16(reactor)),
                        chunkPool: pool, layout: .lines, seed: 7, now: Self.start)))
        }
    }

    /// One reactor with one connection, and a client certificate.
    static let settings = ReactorSettings(
        campaign: campaign, authority: Array("apns.test".utf8),
        topic: Array("com.example.app".utf8), pushType: Array("alert".utf8), priority: nil,
        expiration: nil, collapseIdentifier: nil, payload: Array(#"{"aps":{}}"#.utf8),
        connections: 1, streamsPerConnection: 1000, milliRatePerConnection: nil,
        usesProviderToken: false, onLost: .record, retryPolicy: RetryPolicy(),
        requestTimeout: 30 * second, giveUpAfter: 60 * second, giveUpAfterIsExplicit: true,
        abortAfter: 50, reactors: 1, seed: 1)

    static func token(_ row: Int) -> String {
        let digits = String(row, radix: 16)
        return String(repeating: "0", count: 64 - digits.count) + digits
    }

    /// The row that a request is for.
    static func row(_ request: ScriptedServer.Request) -> Int { Int(request.token, radix: 16)! }

    var isFinished: Bool { reactors.allSatisfy { $0.machine.isFinished } }

    /// Requests for one row.
    func requests(row: Int) -> [ScriptedServer.Request] {
        for index in sorted..<requests.count {
            ofRow[Self.row(requests[index]), default: []].append(index)
        }
        sorted = requests.count
        return ofRow[row, default: []].map { requests[$0] }
    }

    var settled: UInt64 { reactors.reduce(0) { $0 + $1.machine.snapshot().counts.settled } }

    /// Connections that failed.
    var failures: UInt64 { reactors.reduce(0) { $0 + $1.machine.snapshot().failures } }

    var heldBack: UInt64 { reactors.reduce(0) { $0 + $1.machine.snapshot().refusedByCredential } }

    /// How much of the connections' time went to one cause, nanoseconds.
    func time(limitedBy cause: Bottleneck) -> UInt64 {
        reactors.reduce(0) { $0 + $1.machine.snapshot().limited[cause.rawValue] }
    }

    // MARK: Time

    /// Lets the run go on until something is so, or until it is finished, or for so long.
    func run(for limit: UInt64 = 3600 * second, until isSo: () -> Bool = { false }) {
        let end = time + limit
        while !isFinished, !isSo() {
            for index in reactors.indices { turn(index) }
            if coordinator.wantsToken {
                if coordinator.renewToken(now) != nil { renewals.append(time) }
            }
            guard reactors.allSatisfy({ $0.inbox.isEmpty }) else { continue }
            let due = reactors.filter { !$0.machine.isFinished }.map { $0.machine.nextDeadline }
            guard time < end, let next = due.min() else { return }
            time = min(max(next - Self.start.nanoseconds, time + 1000) + lateness, end)
        }
    }

    /// The process is stopped for so long: what came meanwhile is taken in after the turn that follows.
    func stop(for duration: UInt64) {
        time += duration
        for index in reactors.indices { turn(index, taking: false) }
    }

    private func turn(_ index: Int, taking: Bool = true) {
        let reactor = reactors[index]
        guard !reactor.machine.isFinished else { return }
        let inbox = taking ? reactor.inbox : []
        if taking { reactor.inbox = [] }
        for delivery in inbox {
            switch delivery {
            case .completion(let completion): reactor.machine.completed(completion, now: now)
            case .bytes(let link, let bytes):
                guard links[link].closed == nil else { continue }
                bytes.withUnsafeBytes {
                    reactor.machine.received(
                        connection: links[link].slot, bytes: RawSpan(_unsafeBytes: $0), now: now)
                }
            }
        }
        reactor.machine.exchangeWithRun(now)
        reactor.machine.runIteration(now)
        reactor.machine.finishIteration(now)
        turns += 1
        events += reactor.machine.takeEvents().events
        while let submission = reactor.machine.nextSubmission() {
            perform(submission, index)
        }
    }

    private func read(_ rowLimit: Int) -> ReactorCompletion {
        guard let chunk = try? source.next(rowLimit: rowLimit) else { return .listEnded }
        adjustChunk(chunk)
        return .chunk(chunk)
    }

    /// The reads that are held come to their end.
    func endReads() {
        holdsReads = false
        for (reactor, rowLimit) in heldReads {
            reactors[reactor].inbox.append(.completion(read(rowLimit)))
        }
        heldReads = []
    }

    private func perform(_ submission: ReactorSubmission, _ index: Int) {
        let reactor = reactors[index]
        func complete(_ completion: ReactorCompletion) {
            reactor.inbox.append(.completion(completion))
        }
        switch submission {
        case .resolve:
            resolutions += 1
            guard !holdsLookups else { return }
            guard resolves else {
                return complete(.resolved(.failure(ResolutionFailure(message: "no such name"))))
            }
            complete(
                .resolved(
                    .success((0..<addressCount).map { .v4(0x0a00_0001 + UInt32($0), port: 443) })))
        case .requestChunk(let rowLimit):
            chunkRequests += 1
            if reactor.machine.stateMachine.rows.chunks.firstUnreserved != nil {
                asksWhileChunksWait += 1
            }
            guard !holdsReads else { return heldReads.append((index, rowLimit)) }
            complete(read(rowLimit))
        case .connect(let slot, let address):
            let number = (0..<addressCount).first {
                .v4(0x0a00_0001 + UInt32($0), port: 443) == address
            }
            links.append(Link(reactor: index, slot: slot, address: number!, begun: time))
            reactor.linkOfSlot[slot] = links.count - 1
            switch opening(links.count - 1) {
            case .fails(let errno): complete(.connected(connection: slot, errno: errno))
            case .silent: break
            case .open, .noSettings: complete(.connected(connection: slot, errno: 0))
            }
        case .receive(let slot):
            let link = reactor.linkOfSlot[slot]!
            if case .open = opening(link), !isBinary {
                say(
                    ScriptedServer.settings(maxStreams: maxStreams, streamWindow: streamWindow),
                    on: link)
            }
        case .send(let slot, let bytes):
            let link = reactor.linkOfSlot[slot]!
            if let errno = links[link].sendErrno {
                return complete(.sent(connection: slot, result: -errno))
            }
            guard links[link].held == nil else {
                links[link].held! += bytes
                return
            }
            complete(.sent(connection: slot, result: bytes.count))
            arrived(Array(bytes), link: link)
        case .close(let slot):
            links[reactor.linkOfSlot[slot]!].closed = time
            if !holdsCloses { complete(.closed(connection: slot)) }
        case .write(let bytes, let offset):
            writes.append((time, reactor.machine.stateMachine.writeIsQuiet))
            guard !holdsWrites else { return }
            reactor.segment.replaceSubrange(Int(offset)..., with: bytes)
            complete(.wrote(result: bytes.count))
        case .sync(let position):
            #expect(position > 0 && position <= UInt64(reactor.segment.count))
            syncs += 1
            guard !holdsSyncs else { return heldSyncs.append(index) }
            complete(.synced(result: 0))
        }
    }

    /// A newer attempt has claimed the ledger, which the reactors find out behind the syncs that are in flight.
    func supersede() {
        for index in heldSyncs { reactors[index].inbox.append(.completion(.superseded)) }
        heldSyncs = []
    }

    /// The disk fails at all syncs that are in flight.
    func failSyncs(errno: Int32) {
        for index in heldSyncs {
            reactors[index].inbox.append(.completion(.synced(result: -Int(errno))))
        }
        heldSyncs = []
    }

    // MARK: The server's side

    /// Has a server say something.
    func say(_ bytes: [UInt8], on link: Int) {
        reactors[links[link].reactor].inbox.append(.bytes(link: link, bytes))
    }

    /// The server ends the connection without a word.
    func hangUp(_ link: Int) {
        reactors[links[link].reactor].inbox.append(
            .completion(.receiveEnded(connection: links[link].slot, errno: 0)))
    }

    /// From now on the network takes nothing of a connection.
    func hold(_ link: Int) { links[link].held = [] }

    /// The network takes what it holds, and all that follows.
    func letGo(_ link: Int) {
        guard let held = links[link].held else { return }
        links[link].held = nil
        reactors[links[link].reactor].inbox.append(
            .completion(.sent(connection: links[link].slot, result: held.count)))
        arrived(held, link: link)
    }

    /// From now on each attempt to send fails.
    func breakSends(_ link: Int, errno: Int) { links[link].sendErrno = errno }

    /// From now on the server answers no PING.
    func deafen(_ link: Int) { links[link].isDeaf = true }

    private func arrived(_ bytes: [UInt8], link: Int) {
        if case .noSettings = opening(link) { return }
        guard !isBinary else { return notified(bytes, link: link) }
        for event in links[link].server.take(bytes) {
            switch event {
            case .request(let stream, let token, let authorization):
                let request = ScriptedServer.Request(
                    connection: link, stream: stream, token: token, authorization: authorization,
                    time: time)
                requests.append(request)
                switch reply(request) {
                case .status(let status, let reason, let retryAfter):
                    say(
                        ScriptedServer.answer(
                            stream, status: status, reason: reason, retryAfter: retryAfter),
                        on: link)
                case .refuse: say(ScriptedServer.reset(stream, code: 7), on: link)
                case .reset: say(ScriptedServer.reset(stream, code: 2), on: link)
                case .silence: break
                }
            case .ping(let opaque):
                links[link].pings.append(time)
                if !links[link].isDeaf { say(ScriptedServer.pong(opaque), on: link) }
            case .settings: say(ScriptedServer.settingsAcknowledgement, on: link)
            case .data(let count) where count > 0:
                say(ScriptedServer.windowUpdate(count), on: link)
            case .data, .goAway: break
            }
        }
    }

    private func notified(_ bytes: [UInt8], link: Int) {
        links[link].notifications.append(bytes)
        while let event = links[link].notifications.next() {
            guard case .notification(let notification) = event else {
                preconditionFailure("a gateway cannot read \(event)")
            }
            notifications.append((link, notification))
        }
    }
}
