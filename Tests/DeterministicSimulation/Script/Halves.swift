import Broadside
import BroadsideSupport
import CBroadsideNghttp2

/// Responses that come in part, or that are not what they say they are.
enum HalfResponse: CaseIterable {
    /// The headers alone: no END_STREAM ever comes.
    case headersOnly
    /// Headers and a part of the body.
    case cutBody
    /// Headers, then RST_STREAM with REFUSED_STREAM: it was processed all the same.
    case refusedAfterHeaders
    /// The content-length is another than the body's.
    case wrongLength
}

/// What of this kind the servers of a process do.
struct Halves {
    /// Chance of a response to be one.
    let chance: Double
    /// Chance of a GOAWAY to be followed by one that names a later stream.
    let raise: Double
    /// From which response of a connection on the header table is used that the client has not got; nil:
    /// it never is.
    let tableFrom: Int?

    /// What a seed draws for one of its processes, of a generator of its own, so that its other draws
    /// stay what they are.
    init(seed: UInt64, process: Int) {
        let mixed = seed ^ 0x6861_6c76_6573_0001 &+ UInt64(process) << 32
        var random = SimulationRandom(seed: mixed)
        chance = random.chance(0.25) ? random.pick([0.01, 0.1, 0.5]) : 0
        raise = random.chance(0.5) ? 0.7 : 0
        tableFrom = random.chance(0.15) ? random.pick([0, 1, random.between(2...60)]) : nil
    }

    private init() {
        chance = 0
        raise = 0
        tableFrom = nil
    }

    static let none = Halves()
}

extension SimulatedServer {
    /// A part of a response, or one that is wrong.
    func answerInPart(_ stream: Int32) {
        guard let state = streams[stream], !state.isAnswered, let answer = state.answer,
            case .half(let half, _) = state.fate
        else { return }
        streams[stream]?.isAnswered = true
        highestProcessed = max(highestProcessed, stream)
        var fields = fields(answer, of: stream)
        switch half {
        case .wrongLength:
            let count = answer.body.count + random.between(1...9)
            fields.append(("content-length", "\(count)"))
            submit(fields, hasBody: answer.reason != nil, stream: stream)
            return
        case .headersOnly, .refusedAfterHeaders:
            streams[stream]?.bodyLimit = 0
        case .cutBody:
            streams[stream]?.bodyLimit = answer.body.isEmpty ? 0 : random.below(answer.body.count)
        }
        submit(fields, hasBody: true, stream: stream)
        let delay = random.skewedDelay(4 * second)
        if half == .refusedAfterHeaders {
            simulation.schedule(.refuse(stream: stream), link: link, after: delay)
        } else if random.chance(0.6) {
            let end = random.pick([ServerAct.reset(stream: stream), .close, .resetConnection])
            simulation.schedule(end, link: link, after: delay)
        }
    }

    /// A GOAWAY with a later last stream than the one before: "Endpoints MUST NOT increase the value they
    /// send in the last stream identifier" (RFC 9113, section 6.8). nghttp2 would not say so.
    func raiseGoAway() {
        guard !isMute else { return }
        pump()
        let last = random.chance(0.5) ? Int32.max : namedLast + 2 * Int32(1 + random.below(9))
        let bytes = frame(7, 0, 0, Self.bytes(of: last) + [0, 0, 0, 0])
        simulation.links[link].goAwayCount += 1
        sentCount += bytes.count
        simulation.serverSent(link: link, bytes)
    }

    private static func bytes(of number: Int32) -> [UInt8] {
        [24, 16, 8, 0].map { UInt8(truncatingIfNeeded: number >> $0) }
    }

    /// Lets nghttp2 not know that the client has no header table: the identifier of that setting becomes
    /// one that means nothing. The client's preface and SETTINGS are its first 45 bytes.
    func hideTableSize(_ bytes: [UInt8]) -> [UInt8] {
        firstBytes += bytes
        guard firstBytes.count >= 45 else { return [] }
        precondition(firstBytes[27] == 4 && firstBytes[33] == 0 && firstBytes[34] == 1)
        firstBytes[33] = 0x0a
        firstBytes[34] = 0x0a
        hasSeenSettings = true
        return firstBytes
    }
}
