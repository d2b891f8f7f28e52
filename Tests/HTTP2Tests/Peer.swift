import BroadsideHPACK
import Testing

@testable import BroadsideHTTP2

/// How the server's bytes are cut into inputs. Every scenario has to hear the same in each way.
enum Tearing: CaseIterable, Sendable {
    case whole
    case byteByByte
    case sevens

    func pieces(of bytes: [UInt8]) -> [[UInt8]] {
        let size =
            switch self {
            case .whole: max(bytes.count, 1)
            case .byteByByte: 1
            case .sevens: 7
            }
        return stride(from: 0, to: bytes.count, by: size).map {
            Array(bytes[$0..<min($0 + size, bytes.count)])
        }
    }
}

/// A frame, for building what the server sends and for looking at what we send.
struct Frame: Equatable, CustomStringConvertible {
    var type: FrameType
    var flags: FrameFlags = []
    var stream: UInt32 = 0
    var payload: [UInt8] = []

    var bytes: [UInt8] {
        FrameHeader(length: payload.count, type: type, flags: flags, streamID: stream).bytes
            + payload
    }

    var description: String {
        "type \(type.rawValue) flags \(flags.rawValue) stream \(stream) payload \(payload)"
    }

    static func settings(_ pairs: (UInt16, UInt32)...) -> Frame {
        Frame(
            type: .settings,
            payload: pairs.flatMap { [UInt8($0.0 >> 8), UInt8($0.0 & 0xff)] + be32($0.1) })
    }

    static let settingsAcknowledgement = Frame(type: .settings, flags: .acknowledgement)

    static func headers(
        _ stream: UInt32, _ block: [UInt8], end: Bool = true, endHeaders: Bool = true
    ) -> Frame {
        var flags: FrameFlags = end ? .endStream : []
        if endHeaders { flags.insert(.endHeaders) }
        return Frame(type: .headers, flags: flags, stream: stream, payload: block)
    }

    static func continuation(_ stream: UInt32, _ block: [UInt8], end: Bool = true) -> Frame {
        Frame(type: .continuation, flags: end ? .endHeaders : [], stream: stream, payload: block)
    }

    static func data(_ stream: UInt32, _ text: String, end: Bool = true) -> Frame {
        Frame(type: .data, flags: end ? .endStream : [], stream: stream, payload: Array(text.utf8))
    }

    static func reset(_ stream: UInt32, _ code: ErrorCode) -> Frame {
        Frame(type: .resetStream, stream: stream, payload: be32(code.rawValue))
    }

    static func windowUpdate(_ stream: UInt32, _ increment: UInt32) -> Frame {
        Frame(type: .windowUpdate, stream: stream, payload: be32(increment))
    }

    static func goAway(_ last: UInt32, _ code: ErrorCode, _ text: String = "") -> Frame {
        Frame(type: .goAway, payload: be32(last) + be32(code.rawValue) + Array(text.utf8))
    }

    static func ping(_ opaque: UInt64, acknowledges: Bool = false) -> Frame {
        Frame(
            type: .ping, flags: acknowledges ? .acknowledgement : [],
            payload: be32(UInt32(opaque >> 32)) + be32(UInt32(truncatingIfNeeded: opaque)))
    }

    static func be32(_ value: UInt32) -> [UInt8] {
        [24, 16, 8, 0].map { UInt8(truncatingIfNeeded: value >> $0) }
    }

    static func parse(_ bytes: [UInt8]) -> [Frame] {
        var frames: [Frame] = []
        var rest = bytes[...]
        while !rest.isEmpty {
            let head = Array(rest.prefix(9))
            let length = Int(head[0]) << 16 | Int(head[1]) << 8 | Int(head[2])
            let id = head[5...8].reduce(UInt32(0)) { $0 << 8 | UInt32($1) }
            frames.append(
                Frame(
                    type: FrameType(rawValue: head[3]), flags: FrameFlags(rawValue: head[4]),
                    stream: id, payload: Array(rest.dropFirst(9).prefix(length))))
            rest = rest.dropFirst(9 + length)
        }
        return frames
    }
}

/// An event with what could be read at it.
struct Heard: Equatable {
    var event: ClientConnectionStateMachine.Event
    var body = ""
    var retryAfter: UInt32?
}

/// A machine in a test, and the bytes that go in and out of it.
final class Peer {
    var machine: ClientConnectionStateMachine
    let tearing: Tearing
    var heard: [Heard] = []

    init(
        _ tearing: Tearing = .whole,
        _ configuration: ClientConnectionStateMachine.Configuration = .init()
    ) {
        machine = ClientConnectionStateMachine(configuration: configuration)
        self.tearing = tearing
    }

    /// A connection that is ready, with the first bytes out of the way.
    static func ready(
        _ tearing: Tearing = .whole, maxStreams: Int = 1000, gate: Bool = false,
        settings: (UInt16, UInt32)...
    ) -> Peer {
        let peer = Peer(
            tearing, .init(maxStreams: maxStreams, gateUntilFirstResponse: gate))
        peer.machine.start()
        let first = Frame(
            type: .settings,
            payload: settings.flatMap {
                [UInt8($0.0 >> 8), UInt8($0.0 & 0xff)] + Frame.be32($0.1)
            })
        let events = peer.receive(first, .settingsAcknowledgement)
        precondition(events == [.ready])
        _ = peer.takeBytes()
        return peer
    }

    @discardableResult
    func receive(_ frames: Frame...) -> [ClientConnectionStateMachine.Event] {
        receive(frames.flatMap(\.bytes))
    }

    @discardableResult
    func receive(_ bytes: [UInt8]) -> [ClientConnectionStateMachine.Event] {
        var events: [ClientConnectionStateMachine.Event] = []
        for piece in tearing.pieces(of: bytes) {
            var offset = 0
            while let event = machine.nextEvent(in: piece.span.bytes, at: &offset) {
                events.append(event)
                var heard = Heard(event: event)
                if case .response = event {
                    heard.body = machine.responseBody.text
                    heard.retryAfter = machine.retryAfter.seconds(from: 0).map { UInt32($0) }
                }
                self.heard.append(heard)
            }
            precondition(offset == piece.count)
        }
        return events
    }

    func takeBytes(atMost limit: Int = 1 << 20) -> [UInt8] {
        let storage = UnsafeMutableRawBufferPointer.allocate(byteCount: limit, alignment: 8)
        defer { storage.deallocate() }
        var output = OutputRawSpan(buffer: storage, initializedCount: 0)
        machine.takeOutput(into: &output)
        return Array(storage[..<output.byteCount])
    }

    func takeFrames() -> [Frame] { Frame.parse(takeBytes()) }

    // The expectations can't take a value that is not copyable apart, so they ask here.
    var isUsable: Bool { machine.isUsable }
    var isDraining: Bool { machine.isDraining }
    var openCount: Int { machine.openStreamCount }
    var oldest: UInt32? { machine.oldestOpenStream()?.tag }
    func capacity(_ payloadCount: Int = 33) -> Int {
        machine.requestCapacity(payloadCount: payloadCount)
    }

    /// Opens streams for the tags and returns their ids.
    @discardableResult
    func open(_ tags: UInt32..., payloadCount: Int = 0) -> [UInt32] {
        tags.map { machine.openStream(tag: $0, payloadCount: payloadCount) }
    }
}

extension RawSpan {
    var text: String { withUnsafeBytes { String(decoding: $0, as: UTF8.self) } }
}

func hexBytes(_ text: String) -> [UInt8] {
    let digits = text.utf8.map { UInt8(ascii: "a") <= $0 ? $0 - 87 : $0 - 48 }
    return stride(from: 0, to: digits.count, by: 2).map { digits[$0] << 4 | digits[$0 + 1] }
}
