import Testing

@testable import BroadsideAPNs
@testable import BroadsideLegacyGateway

/// The legacy gateway's and the feedback service's bytes, against vectors that were made elsewhere.
struct BinaryProtocolTests {
    private static let token = hexBytes(
        "fc13adff785122b4ad28809a3420982341241421348097878e577c991de8f000")
    private static let payload = Array(#"{"aps":{"alert":"Hello"}}"#.utf8)

    private static func hexBytes(_ text: String) -> [UInt8] {
        stride(from: 0, to: text.utf8.count, by: 2).map { place in
            let start = text.index(text.startIndex, offsetBy: place)
            return UInt8(text[start..<text.index(start, offsetBy: 2)], radix: 16)!
        }
    }

    private static let body =
        "fc13adff785122b4ad28809a3420982341241421348097878e577c991de8f000"
    private static let text =
        "7b22617073223a7b22616c657274223a2248656c6c6f227d7d"

    static let forms: [(BinaryNotification, [UInt8])] = [
        (
            BinaryNotification(command: .simple, token: token, payload: payload),
            hexBytes("000020\(body)0019\(text)")
        ),
        (
            BinaryNotification(
                command: .enhanced, identifier: 1234, expiration: 1_458_604_800, token: token,
                payload: payload), hexBytes("01000004d256f08b000020\(body)0019\(text)")
        ),
        (
            BinaryNotification(
                command: .frame, identifier: 1234, expiration: 1_458_604_800, priority: 10,
                token: token, payload: payload),
            hexBytes(
                "0200000051010020\(body)020019\(text)030004000004d204000456f08b000500010a")
        ),
    ]

    @Test(arguments: 0..<3)
    func `Each command is written and read as its vector`(_ number: Int) {
        let (notification, bytes) = Self.forms[number]
        #expect(notification.encoded == bytes)
        #expect(
            notification.command.count(
                tokenCount: 32, payloadCount: 25, hasPriority: true) == bytes.count)
        var reader = BinaryNotificationReader()
        reader.append(bytes)
        #expect(reader.next() == .notification(notification))
        #expect(reader.next() == nil)
    }

    @Test func `An expiration after 2038 is sent as the last that is not negative`() {
        func expiration(_ seconds: UInt32?) -> UInt32? {
            BinarySettings(command: .frame, expiration: seconds, priority: 10, silence: 1)
                .expiration
        }
        #expect(expiration(0x7fff_fffe) == 0x7fff_fffe && expiration(nil) == nil)
        #expect(expiration(0x8000_0000) == 0x7fff_ffff && expiration(.max) == 0x7fff_ffff)
    }

    @Test func `A stream of notifications is read in pieces of any size`() {
        let stream = Self.forms.flatMap(\.1)
        for size in [1, 7, 61, 62, 63] {
            var reader = BinaryNotificationReader()
            var read: [BinaryNotification] = []
            for start in stride(from: 0, to: stream.count, by: size) {
                reader.append(stream[start..<min(start + size, stream.count)])
                while case .notification(let notification)? = reader.next() {
                    read.append(notification)
                }
            }
            #expect(read == Self.forms.map(\.0))
        }
    }

    @Test func `A malformed notification has its status`() {
        let long = [UInt8](repeating: 1, count: 101)
        let large = [UInt8](repeating: 1, count: 2049)
        func status(_ bytes: [UInt8]) -> BinaryNotificationReader.Event? {
            var reader = BinaryNotificationReader()
            reader.append(bytes)
            return reader.next()
        }
        func frame(_ items: [UInt8]) -> [UInt8] {
            [2, 0, 0, UInt8(items.count >> 8), UInt8(items.count & 0xff)] + items
        }
        let identifier: [UInt8] = [3, 0, 4, 0, 0, 0, 9]
        #expect(status([3]) == .malformed(.protocolError, identifier: nil))
        #expect(
            status(frame(identifier + [1, 0, 1, 7]))
                == .malformed(.missingPayload, identifier: 9))
        #expect(
            status(frame(identifier + [2, 0, 1, 7]))
                == .malformed(.missingDeviceToken, identifier: 9))
        #expect(
            status(frame(identifier + [1, 0, 101] + long + [2, 0, 1, 7]))
                == .malformed(.invalidTokenSize, identifier: 9))
        #expect(
            status(frame(identifier + [1, 0, 1, 7] + [2, 8, 1] + large))
                == .malformed(.invalidPayloadSize, identifier: 9))
        #expect(
            status(frame(identifier + [9, 0, 0])) == .malformed(.protocolError, identifier: 9))
        #expect(
            status(frame(identifier + [5, 0, 1, 3, 1, 0, 1, 7, 2, 0, 1, 7]))
                == .malformed(.protocolError, identifier: 9))
        #expect(
            status(frame(identifier + identifier)) == .malformed(.protocolError, identifier: 9))
        #expect(status(frame([1, 0, 9, 1])) == .malformed(.protocolError, identifier: nil))
        #expect(
            status([1, 0, 0, 0, 9, 0, 0, 0, 0, 0, 1, 7, 1, 1])
                == .malformed(.invalidPayloadSize, identifier: 9))
    }

    @Test func `Error packets are read with the meaning of their status`() {
        #expect(
            BinaryErrorPacket([8, 8, 0, 0, 4, 0xd2]) == .init(status: 8, identifier: 1234))
        #expect(BinaryErrorPacket([8, 10, 0, 0, 4, 0xd2])?.meaning == .shutdown)
        #expect(BinaryErrorPacket([8, 77, 0, 0, 4, 0xd2])?.meaning == .unknown)
        #expect(BinaryErrorPacket([7, 8, 0, 0, 4, 0xd2]) == nil)
        #expect(BinaryErrorPacket([8, 8, 0, 0, 4]) == nil)
        #expect(
            BinaryErrorPacket(status: 255, identifier: 0).encoded == [8, 255, 0, 0, 0, 0])
        #expect(BinaryStatus.invalidToken.reason == .badDeviceToken)
        #expect(BinaryStatus.processingError.row == .retryAfterDelay)
        #expect(BinaryStatus.shutdown.row == .accepted)
        #expect(BinaryStatus.missingTopic.campaign == .refusesCredential)
    }

    @Test(arguments: [1, 7, 38, 4096])
    func `Feedback tuples are read in pieces of any size`(_ size: Int) throws {
        let stream =
            Self.hexBytes("56ef39800020\(Self.body)")
            + Self.hexBytes(
                "56ef47900020000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f")
        var reader = FeedbackReader()
        var tuples: [FeedbackTuple] = []
        for start in stride(from: 0, to: stream.count, by: size) {
            reader.append(stream[start..<min(start + size, stream.count)])
            while let tuple = try reader.next() { tuples.append(tuple) }
        }
        #expect(
            tuples == [
                FeedbackTuple(unixSeconds: 1_458_518_400, token: Self.token),
                FeedbackTuple(unixSeconds: 1_458_522_000, token: Array(0..<32)),
            ])
        #expect(tuples.flatMap(\.encoded) == stream)
        #expect(reader.pendingCount == 0)
        reader.append([0, 0, 0, 0, 0, 0])
        #expect(throws: FeedbackReader.Problem(tokenCount: 0)) { try reader.next() }
    }
}
