internal import BroadsideAPNs
internal import BroadsideLegacyGateway
internal import BroadsidePrimitives
internal import BroadsideSupport
internal import Synchronization

/// Responses that are read from a file. The Nth request of a device token gets the response in the
/// Nth line of that token. When a token has no more lines, its last line is used again.
///
/// A token that is not in the file gets the same response as without a file. Shared by all threads
/// of an endpoint.
final class Replay: Sendable {
    /// Maximum number of lines with a device token.
    static let linesLimit = 1_000_000
    /// Maximum size of the file, bytes.
    private static let sizeLimit = 256 << 20

    /// The counts of requests, by the way in which their responses were found.
    struct Counts: Sendable, Equatable {
        /// The requests that got the response in the next unused line of their token.
        var replayed: UInt64 = 0
        /// The requests that got the last line of their token again.
        var repeated: UInt64 = 0
        /// The requests of tokens that are not in the file.
        var unknown: UInt64 = 0

        mutating func add(_ other: Counts) {
            replayed += other.replayed
            repeated += other.repeated
            unknown += other.unknown
        }
    }

    private struct Sequence {
        var responses: [Response]
        var next = 0
    }

    /// A device token, whose responses over HTTP/2 and on the legacy gateway are separate.
    private struct Device: Hashable {
        var token: [UInt8]
        var isBinary: Bool
    }

    private struct State {
        var sequences: [Device: Sequence]
        var counts = Counts()
        /// The counts from the start to the last restart.
        var earlier = Counts()
    }

    private let state: Mutex<State>

    /// Reads a file.
    init(path: String) throws(SimulatorError) {
        let text = try PrivateFile.read(path, option: "replay", limit: Self.sizeLimit)
        state = Mutex(State(sequences: try Self.sequences(text[text.textStart...], path)))
    }

    /// Returns the response for a request; nil if the file does not name the token.
    ///
    /// - Parameters:
    ///   - digits: Digits of the device token; empty if the token is not well-formed.
    ///   - isBinary: Whether the response is one of the legacy gateway.
    func take(_ digits: RawSpan, isBinary: Bool = false) -> Response? {
        guard digits.byteCount > 0 else { return nil }
        // Decimal digits already have this bit set.
        let device = Device(token: Array(digits).map { $0 | 0x20 }, isBinary: isBinary)
        return state.withLock { state in
            guard let sequence = state.sequences[device] else {
                state.counts.unknown += 1
                return nil
            }
            assert(sequence.next <= sequence.responses.count, "no line is skipped")
            guard sequence.next < sequence.responses.count else {
                state.counts.repeated += 1
                return sequence.responses.last
            }
            state.sequences[device]?.next += 1
            state.counts.replayed += 1
            return sequence.responses[sequence.next]
        }
    }

    /// Starts again at the first line of each token, and with counts of 0.
    func restart() {
        state.withLock { state in
            for device in state.sequences.keys { state.sequences[device]?.next = 0 }
            state.earlier.add(state.counts)
            state.counts = Counts()
        }
    }

    /// The counts since the last restart.
    var counts: Counts { state.withLock { $0.counts } }

    /// The counts since the start.
    var totals: Counts {
        state.withLock { state in
            var totals = state.earlier
            totals.add(state.counts)
            return totals
        }
    }

    // MARK: File

    private static func sequences(
        _ text: ArraySlice<UInt8>, _ path: String
    ) throws(SimulatorError) -> [Device: Sequence] {
        var sequences: [Device: Sequence] = [:]
        var number = 0
        var count = 0
        for bytes in text.split(separator: 0x0a, omittingEmptySubsequences: false) {
            number += 1
            guard bytes.contains(where: { $0 != 0x20 && $0 != 0x0d }) else { continue }
            func wrong(_ problem: String) -> SimulatorError {
                SimulatorError("--replay \(path), line \(number): \(problem)", exitCode: 2)
            }
            let line: Line
            do {
                line = try JSONCoding.decode(Line.self, from: Array(bytes))
            } catch {
                throw wrong(
                    "not a response: write a line like {\"token\":\"00fc13\",\"status\":410,"
                        + "\"reason\":\"Unregistered\",\"timestamp\":1700000000000}")
            }
            if let unknown = line.unknownKey {
                throw wrong(
                    "'\(ForeignText.escaped(unknown))' is unknown: use token, protocol, status, "
                        + "reason, timestamp and retry_after")
            }
            guard let token = line.token else { continue }
            guard TokenOutcome.head(ofDigits: Array(token.utf8).span.rawBytes) != nil else {
                throw wrong(
                    "'\(ForeignText.escaped(token))' is not a device token: write an even number "
                        + "of hexadecimal digits, 2 to 200")
            }
            guard ["http2", "binary"].contains(line.protocol ?? "http2") else {
                throw wrong("'protocol' must be http2 or binary")
            }
            guard let response = line.isBinary ? line.binaryResponse : line.response else {
                throw wrong(
                    line.isBinary
                        ? "status and reason do not match: write a status of the legacy gateway from 0 "
                            + "to 255, without a reason"
                        : "status and reason do not match: write 200 or 0 without a reason, or 400 to "
                            + "599 with one of APNs' reasons")
            }
            count += 1
            guard count <= linesLimit else {
                throw wrong("more than \(linesLimit) responses: remove some")
            }
            let device = Device(token: token.utf8.map { $0 | 0x20 }, isBinary: line.isBinary)
            sequences[device, default: Sequence(responses: [])].responses.append(response)
        }
        return sequences
    }

    /// One line of the file.
    private struct Line: Decodable {
        private struct Key: CodingKey {
            var stringValue: String
            var intValue: Int? { nil }

            init(_ name: String) { stringValue = name }
            init?(stringValue: String) { self.stringValue = stringValue }
            init?(intValue: Int) { nil }
        }

        var token: String?
        var `protocol`: String?
        var status: UInt16
        var reason: String?
        var timestamp: UInt64?
        var retryAfter: UInt32?
        var unknownKey: String?

        init(from decoder: any Decoder) throws {
            let members = try decoder.container(keyedBy: Key.self)
            token = try members.decodeIfPresent(String.self, forKey: Key("token"))
            `protocol` = try members.decodeIfPresent(String.self, forKey: Key("protocol"))
            status = try members.decode(UInt16.self, forKey: Key("status"))
            reason = try members.decodeIfPresent(String.self, forKey: Key("reason"))
            timestamp = try members.decodeIfPresent(UInt64.self, forKey: Key("timestamp"))
            retryAfter = try members.decodeIfPresent(UInt32.self, forKey: Key("retry_after"))
            let known = ["token", "protocol", "status", "reason", "timestamp", "retry_after"]
            unknownKey = members.allKeys.map(\.stringValue).filter { !known.contains($0) }.min()
        }

        var isBinary: Bool { `protocol` == "binary" }

        /// The response of the legacy gateway; nil if the status is not one of its statuses, or
        /// contradicts the reason.
        var binaryResponse: Response? {
            guard let status = UInt8(exactly: status) else { return nil }
            if let reason, BinaryStatus(rawValue: status)?.reason.text != reason { return nil }
            return Response(status: UInt16(status), reason: nil)
        }

        /// The response; nil if status and reason contradict each other.
        var response: Response? {
            var response = Response(status: status, reason: nil)
            response.timestampMilliseconds = timestamp ?? 0
            response.retryAfterSeconds = retryAfter
            switch status {
            case 0, 200: return reason == nil ? response : nil
            case 400...599:
                guard let reason else { return response }
                guard let known = Reason.ofAPNs(reason) else { return nil }
                response.reason = known
                return response
            default: return nil
            }
        }
    }
}

extension Reason {
    /// Returns the reason of APNs with this text; nil if APNs has no such reason.
    static func ofAPNs(_ text: String) -> Reason? {
        let body = Array("{\"reason\":\"\(text)\"}".utf8)
        return ReasonBody.parse(body.span.rawBytes).reason
    }
}
