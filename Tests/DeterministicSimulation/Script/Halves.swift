import Broadside
import BroadsideSupport
import CBroadsideNghttp2

/// Responses that are incomplete or contradict themselves.
enum HalfResponse: CaseIterable {
    /// Only the headers, without END_STREAM.
    case headersOnly
    /// Headers and a part of the body.
    case cutBody
    /// Headers, then RST_STREAM with REFUSED_STREAM, although the request was processed.
    case refusedAfterHeaders
    /// The content-length differs from the length of the body.
    case wrongLength
}

/// Partial and wrong responses of a process's servers.
struct Halves {
    /// Chance that a response is one of these.
    let chance: Double
    /// Chance that a GOAWAY is followed by one with a later last stream.
    let raise: Double
    /// Number of the response on a connection from which the server uses a header table that the
    /// client does not have; nil: it never does.
    let tableFrom: Int?

    /// Draws the faults of a process from their own generator, so that the seed's other draws stay
    /// the same.
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
    /// Sends a part of a response, or a wrong response.
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

    /// Sends a GOAWAY with a later last stream than the previous one: "Endpoints MUST NOT increase
    /// the value they send in the last stream identifier" (RFC 9113, section 6.8). nghttp2 would
    /// not send it.
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

    /// Hides from nghttp2 that the client has no header table: the identifier of that setting is
    /// replaced by an unknown one. The client's preface and SETTINGS are its first 45 bytes.
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
