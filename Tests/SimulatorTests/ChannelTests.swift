import BroadsideAPNs
import Foundation
import Testing

@testable import BroadsideSimulator

/// Broadcast channels, by curl and by Python's h2.
@Suite(.enabled(if: IndependentClient.isThere, "python3-h2 is not installed"))
struct ChannelTests {
    typealias Client = IndependentClient

    static let app = "com.example.Broadside"
    static let create = "{\"message-storage-policy\":1,\"push-type\":\"LiveActivity\"}"
    static let update = """
        {"aps":{"timestamp":1790000000,"event":"update","content-state":{"home":2,"away":1,"minute":74}}}
        """
    static let unknownChannel = "bWF0Y2gtMjAyNi0xMS0yMg=="

    // MARK: curl

    @Test(.enabled(if: isInstalled("curl"), "curl is not installed"))
    func `curl creates, reads, lists, sends to and deletes a channel`() throws {
        let harness = try EndpointHarness()
        let token = try harness.providerToken()
        func call(
            _ method: String, _ path: String, _ body: String? = nil, _ more: [String] = []
        ) throws -> EndpointHarness.Response {
            try harness.curl(
                path, authorization: token, topic: nil, body: body,
                more: ["-X", method] + more.flatMap { ["-H", $0] })
        }
        let path = "/1/apps/\(Self.app)/channels"
        let made = try call("POST", path, Self.create)
        #expect(made.status == 201 && made.body.isEmpty, "\(made.errors)")
        let channel = try #require(made.headers["apns-channel-id"])
        // Computed from the generator's definition, in Python: seed 0.
        #expect(channel == "XW6Lh1Y1xIPMYq5jlLkMJw==")
        #expect(made.headers["apns-request-id"]?.utf8.count == 36)
        let named = "apns-channel-id: \(channel)"
        let read = try call("GET", path, nil, [named])
        #expect(read.status == 200 && read.body == Self.create)
        let list = try call("GET", "/1/apps/\(Self.app)/all-channels")
        #expect(list.body == "{\"channels\":[\"\(channel)\"]}")
        let sent = try call(
            "POST", "/4/broadcasts/apps/\(Self.app)", Self.update,
            [
                named, "apns-push-type: Liveactivity", "apns-priority: 5", "apns-expiration: 0",
                "apns-request-id: \(EndpointHarness.id)",
            ])
        #expect(sent.status == 200 && sent.body.isEmpty, "\(sent.body)")
        #expect(sent.headers["apns-request-id"] == EndpointHarness.id)
        #expect(sent.headers["apns-unique-id"] == nil, "this is production")
        let deleted = try call("DELETE", path, nil, [named])
        #expect(deleted.status == 204 && deleted.body.isEmpty)
        let gone = try call("DELETE", path, nil, [named])
        #expect(gone.status == 400 && gone.body == "{\"reason\":\"ChannelNotRegistered\"}")
        #expect(try call("GET", "/1/apps/\(Self.app)/all-channels").body == "{\"channels\":[]}")
        let totals = harness.stop()
        #expect(
            totals.channelRequests
                == ["create": 1, "read": 1, "list": 2, "broadcast": 1, "delete": 1])
        #expect(totals.accepted == 0 && totals.acceptedMessages == 1 && totals.requests == 7)
    }

    // MARK: Reasons

    struct Case: Sendable, CustomTestStringConvertible {
        let status: Int
        let reason: String
        let method: String
        let path: String
        var fields: [(String, String)] = []
        var body = ""
        var hasToken = true
        /// The use of the key that signs; nil: the first key.
        var key: String?

        var testDescription: String { "\(status) \(reason) \(method) \(body)" }
    }

    private static let channels = "/1/apps/\(app)/channels"
    private static let broadcasts = "/4/broadcasts/apps/\(app)"
    private static let live = ("apns-push-type", "liveactivity")

    /// A request about the app's channels.
    private static func channel(
        _ method: String, _ reason: String, status: Int = 400, _ fields: [(String, String)] = [],
        body: String = ""
    ) -> Case {
        Case(
            status: status, reason: reason, method: method, path: channels, fields: fields,
            body: body)
    }

    private static func id(_ value: String) -> (String, String) { ("apns-channel-id", value) }

    /// A broadcast to the channel that stores nothing.
    private static func broadcast(
        _ reason: String, status: Int = 400, _ more: [(String, String)] = [live],
        body: String = update
    ) -> Case {
        Case(
            status: status, reason: reason, method: "POST", path: broadcasts,
            fields: [id("CHANNEL")] + more, body: body)
    }

    /// Each reason of the documents by a request; `CHANNEL` is the ID of a channel that stores
    /// nothing.
    static let cases = [
        Case(status: 404, reason: "BadPath", method: "GET", path: "/1/apps/\(app)/channel"),
        Case(status: 404, reason: "BadPath", method: "POST", path: "/4/broadcasts/apps/"),
        channel("PUT", "MethodNotAllowed", status: 405),
        Case(
            status: 405, reason: "MethodNotAllowed", method: "GET", path: broadcasts,
            hasToken: false),
        Case(
            status: 403, reason: "MissingProviderToken", method: "GET", path: channels,
            hasToken: false),
        Case(
            status: 403, reason: "BadEnvironmentKeyIdInToken", method: "GET", path: channels,
            key: "key for development"),
        Case(
            status: 403, reason: "TopicMismatch", method: "GET",
            path: "/1/apps/com.stranger/all-channels"),
        Case(
            status: 403, reason: "TopicMismatch", method: "GET",
            path: "/1/apps/com.example.Other/all-channels", key: "key for the topic"),
        Case(
            status: 400, reason: "TopicDisallowed", method: "GET",
            path: "/1/apps/\(app).push-type.liveactivity/all-channels"),
        Case(
            status: 400, reason: "FeatureNotEnabled", method: "GET",
            path: "/1/apps/com.example.Other/all-channels"),
        channel("POST", "BadRequestPayload", body: "{\"push-type\""),
        channel("POST", "PayloadEmpty"),
        channel(
            "POST", "BadRequestParams",
            body: "{\"message-storage-policy\":1,\"push-type\":\"LiveActivity\",\"name\":\"x\"}"),
        channel("POST", "MissingChannelQueueSize", body: "{\"push-type\":\"LiveActivity\"}"),
        channel(
            "POST", "MissingChannelQueueSize",
            body: "{\"message-storage-policy\":2,\"push-type\":\"LiveActivity\"}"),
        channel(
            "POST", "MissingChannelQueueSize",
            body: "{\"message-storage-policy\":\"1\",\"push-type\":\"LiveActivity\"}"),
        channel("POST", "MissingPushType", body: "{\"message-storage-policy\":1}"),
        channel(
            "POST", "InvalidPushType",
            body: "{\"message-storage-policy\":1,\"push-type\":\"alert\"}"),
        channel("GET", "MissingChannelId"),
        channel("GET", "BadChannelId", [id("not base64")]),
        channel("GET", "BadChannelId", [id(String(repeating: "A", count: 260))]),
        channel("DELETE", "ChannelNotRegistered", [id(unknownChannel)]),
        channel("GET", "DuplicateHeaders", [id("CHANNEL"), id("CHANNEL")]),
        broadcast("MissingPushType", []),
        broadcast("InvalidPushType", [("apns-push-type", "alert")]),
        Case(
            status: 400, reason: "MissingChannelId", method: "POST", path: broadcasts,
            fields: [live], body: update),
        Case(
            status: 400, reason: "ChannelNotRegistered", method: "POST", path: broadcasts,
            fields: [live, id(unknownChannel)], body: update),
        broadcast("BadExpirationDate", [live, ("apns-expiration", "soon")]),
        broadcast("BadExpirationDate", [live, ("apns-expiration", "+0")]),
        broadcast("BadExpirationDate", [live, ("apns-expiration", "2000000000")]),
        broadcast("BadPriority", [live, ("apns-priority", "7")]),
        broadcast("BadPriority", [live, ("apns-priority", "+5")]),
        broadcast("BadPriority", [live, ("apns-priority", "010")]),
        broadcast("BadMessageId", [live, ("apns-request-id", "1")]),
        broadcast("BadMessageId", [live, ("apns-id", "1")]),
        broadcast("PayloadEmpty", body: ""),
        broadcast(
            "PayloadTooLarge", status: 413, body: String(repeating: " ", count: 5121)),
        broadcast(
            "", status: 200, body: String(repeating: " ", count: 5120 - update.utf8.count) + update),
    ]

    private static func fields(
        _ method: String, _ path: String, _ more: [(String, String)] = [], token: String?
    ) -> [(String, String)] {
        [
            (":method", method), (":scheme", "https"), (":path", path),
            (":authority", "127.0.0.1"),
        ] + (token.map { [("authorization", "bearer \($0)")] } ?? []) + more
    }

    @Test(arguments: cases) func `A request about channels gets the documented status and reason`(
        _ one: Case
    ) throws {
        let harness = try EndpointHarness()
        let first = try harness.providerToken()
        let made = try Client.converse(
            harness,
            [
                .request(
                    Self.fields("POST", Self.channels, token: first),
                    body: "{\"message-storage-policy\":0,\"push-type\":\"LiveActivity\"}")
            ])
        let channel = try #require(
            made.first { $0.kind == "answer" }?.fields?["apns-channel-id"], "\(made)")
        let token = one.hasToken ? try harness.providerToken(use: one.key) : nil
        let named = one.fields.map { ($0.0, $0.1.replacing("CHANNEL", with: channel)) }
        let events = try Client.converse(
            harness,
            [.request(Self.fields(one.method, one.path, named, token: token), body: one.body)])
        let answer = try #require(events.first { $0.kind == "answer" }, "\(events)")
        #expect(answer.status == one.status, "\(answer)")
        #expect(answer.body == (one.reason.isEmpty ? "" : "{\"reason\":\"\(one.reason)\"}"))
        #expect(
            answer.fields?["apns-request-id"]?.utf8.count == 36 && answer.fields?["apns-id"] == nil)
    }

    @Test(arguments: [channels, broadcasts])
    func `The response to a HEAD request about channels has no body`(_ path: String) throws {
        let harness = try EndpointHarness()
        let fields = Self.fields("HEAD", path, token: try harness.providerToken())
        let events = try Client.converse(harness, [.request(fields, body: "")])
        let answer = try #require(events.first { $0.kind == "answer" }, "\(events)")
        #expect(answer.status == 405 && answer.body == "", "\(answer)")
    }

    @Test
    func `In the development environment a broadcast has an apns-unique-id, a create has none`()
        throws
    {
        let harness = try EndpointHarness { $0.environment = .development }
        let token = try harness.providerToken()
        let made = try Client.converse(
            harness,
            [.request(Self.fields("POST", Self.channels, token: token), body: Self.create)])
        let created = try #require(made.first { $0.kind == "answer" }?.fields)
        #expect(created["apns-unique-id"] == nil)
        let sent = try Client.converse(
            harness,
            [
                .request(
                    Self.fields(
                        "POST", Self.broadcasts,
                        [Self.live, ("apns-channel-id", created["apns-channel-id"] ?? "")],
                        token: token), body: Self.update)
            ])
        let answer = try #require(sent.first { $0.kind == "answer" }?.fields)
        #expect(answer["apns-unique-id"]?.utf8.count == 36, "\(sent)")
    }

    @Test(.enabled(if: isInstalled("curl"), "curl is not installed"))
    func `With --fast a create gets BadPath`() throws {
        let harness = try EndpointHarness { $0.isFast = true }
        let made = try harness.curl(
            Self.channels, authorization: try harness.providerToken(), topic: nil,
            body: Self.create)
        #expect(made.status == 404 && made.body == "{\"reason\":\"BadPath\"}", "\(made.errors)")
    }

    @Test
    func `A scenario's faults apply to requests about channels, which are then not carried out`()
        throws
    {
        let folder = Folder()
        let file = try folder.write(
            "script.json5",
            "{ faults: [{ do: 'answer', reason: 'ServiceUnavailable', at: 1 }] }")
        let harness = try EndpointHarness { $0.scenario = file }
        let token = try harness.providerToken()
        let create = Client.Step.request(
            Self.fields("POST", Self.channels, token: token), body: Self.create)
        let list = Client.Step.request(
            Self.fields("GET", "/1/apps/\(Self.app)/all-channels", token: token), body: "")
        let answers = try Client.converse(harness, [create, list, create, list]).filter {
            $0.kind == "answer"
        }
        #expect(answers.map(\.status) == [503, 200, 201, 200], "\(answers)")
        #expect(answers[0].body == "{\"reason\":\"ServiceUnavailable\"}")
        #expect(answers[1].body == "{\"channels\":[]}")
        #expect(answers[3].body == "{\"channels\":[\"XW6Lh1Y1xIPMYq5jlLkMJw==\"]}")
    }

    // MARK: The store

    private func request(
        _ operation: ChannelRequest.Operation, channel: [UInt8] = [], expiration: UInt64 = 0
    ) throws -> ChannelRequest {
        let (method, path) =
            switch operation {
            case .create: ("POST", Self.channels)
            case .read: ("GET", Self.channels)
            case .list: ("GET", "/1/apps/\(Self.app)/all-channels")
            case .delete: ("DELETE", Self.channels)
            case .broadcast: ("POST", Self.broadcasts)
            }
        let (name, text) = (Array(method.utf8), Array(path.utf8))
        var request = try ChannelRequest(method: name.span.bytes, path: text.span.bytes)
        request.channel = channel
        request.expirationUnixSeconds = expiration
        return request
    }

    private func perform(
        _ store: ChannelStore, _ request: ChannelRequest, body: String = "",
        microseconds: UInt64 = 1_790_000_000_000_000
    ) -> ChannelStore.Result {
        store.perform(
            request, body: Array(body.utf8), identifier: NotificationIDText(repeating: 48),
            microseconds: microseconds)
    }

    @Test
    func `The create after 10,000 channels is CannotCreateChannelConfig, until one is deleted`()
        throws
    {
        let store = ChannelStore(seed: 7)
        let create = try request(.create)
        var last: [UInt8] = []
        for _ in 0..<10_000 {
            last = perform(store, create, body: Self.create).channel
        }
        #expect(
            perform(store, create, body: Self.create).response.reason == .cannotCreateChannelConfig)
        let list = perform(store, try request(.list)).body
        #expect(Set(list.split(separator: UInt8(ascii: "\""))).count > 10_000)
        #expect(list.count < BroadcastChannel.listCountMax)
        #expect(perform(store, try request(.delete, channel: last)).response.status == 204)
        #expect(perform(store, create, body: Self.create).response.status == 201)
    }

    private static let here = Array(repeating: UInt8(ascii: "a"), count: 64)
    private static let away = Array(repeating: UInt8(ascii: "b"), count: 64)

    /// A channel with two subscribers, one of which is offline, and the deliveries' file.
    private func subscribed(
        _ folder: Folder, policy: Int
    ) throws -> (store: ChannelStore, devices: DeviceStore, channel: [UInt8], file: String) {
        let file = folder.file("deliveries")
        let devices = try DeviceStore(deliveries: file)
        let store = ChannelStore(devices: devices)
        let channel = perform(
            store, try request(.create),
            body: "{\"message-storage-policy\":\(policy),\"push-type\":\"LiveActivity\"}"
        ).channel
        _ = devices.setOnline(Self.away, false, microseconds: 1)
        for token in [Self.here, Self.away] {
            #expect(store.setSubscribed(token, to: channel, true) == nil)
        }
        return (store, devices, channel, file)
    }

    private func rows(_ file: String, _ devices: DeviceStore) throws -> [[String]] {
        devices.flush()
        let text = String(decoding: try Data(contentsOf: URL(fileURLWithPath: file)), as: UTF8.self)
        return text.split(separator: "\n").dropFirst().map {
            $0.split(separator: ",", omittingEmptySubsequences: false).map(String.init)
        }
    }

    /// Seconds from the broadcast to the moment at which the device is online, its expiration, and
    /// whether the device gets it.
    @Test(arguments: [
        (1, UInt64(10), UInt64(3600), true), (1, 3599, 3600, true), (1, 3600, 3600, false),
        (1, 28_799, 1_000_000, true), (1, 28_800, 1_000_000, false), (1, 10, 0, false),
        (0, 10, 0, false),
    ])
    func `A broadcast is kept for a device that is away until its expiration, at most 8 hours`(
        _ policy: Int, _ seconds: UInt64, _ expiration: UInt64, _ isDelivered: Bool
    ) throws {
        let folder = Folder()
        let (store, devices, channel, file) = try subscribed(folder, policy: policy)
        let now: UInt64 = 1_790_000_000
        let sent = perform(
            store,
            try request(
                .broadcast, channel: channel, expiration: expiration == 0 ? 0 : now + expiration),
            microseconds: now * 1_000_000)
        #expect(sent.response.status == 200)
        #expect(
            try rows(file, devices).map { $0[1] } == [String(decoding: Self.here, as: UTF8.self)])
        let later = (now + seconds) * 1_000_000
        _ = devices.setOnline(Self.away, true, microseconds: later)
        #expect(store.cameOnline(Self.away, microseconds: later) == (isDelivered ? 1 : 0))
        #expect(store.cameOnline(Self.away, microseconds: later) == 0, "only once")
        let all = try rows(file, devices)
        #expect(all.count == (isDelivered ? 2 : 1))
        #expect(all.map(\.last) == (isDelivered ? ["broadcast", "channel"] : ["broadcast"]))
    }

    @Test func `A device that subscribes after a broadcast gets it once when it comes online`()
        throws
    {
        let folder = Folder()
        let (store, devices, channel, file) = try subscribed(folder, policy: 1)
        let now: UInt64 = 1_790_000_000
        let sent = try request(.broadcast, channel: channel, expiration: now + 3600)
        _ = perform(store, sent, microseconds: now * 1_000_000)
        let late = Array(repeating: UInt8(ascii: "c"), count: 64)
        let later = (now + 10) * 1_000_000
        _ = devices.setOnline(late, false, microseconds: later)
        #expect(store.setSubscribed(late, to: channel, true) == nil)
        _ = devices.setOnline(late, true, microseconds: later)
        #expect(store.cameOnline(late, microseconds: later) == 1)
        #expect(store.cameOnline(late, microseconds: later) == 0, "only once")
        #expect(try rows(file, devices).last?[1] == String(decoding: late, as: UTF8.self))
    }

    @Test
    func
        `The newest broadcast of a channel replaces the stored one, and ends of subscriptions count`()
        throws
    {
        let folder = Folder()
        let (store, devices, channel, file) = try subscribed(folder, policy: 1)
        let now: UInt64 = 1_790_000_000
        for second in 0..<3 {
            let one = try request(.broadcast, channel: channel, expiration: now + 3600)
            _ = perform(store, one, microseconds: (now + UInt64(second)) * 1_000_000)
        }
        #expect(store.counts(microseconds: now * 1_000_000).stored == 1)
        #expect(store.setSubscribed(Self.here, to: channel, false) == nil)
        #expect(store.setSubscribed(Self.here, to: Array("AAAA".utf8), true) != nil)
        let later = (now + 60) * 1_000_000
        _ = devices.setOnline(Self.away, true, microseconds: later)
        #expect(store.cameOnline(Self.away, microseconds: later) == 1)
        #expect(try rows(file, devices).count == 4)
        _ = perform(
            store, try request(.broadcast, channel: channel), microseconds: later)
        #expect(try rows(file, devices).last?[1] == String(decoding: Self.away, as: UTF8.self))
        #expect(try rows(file, devices).count == 5)
        let counts = store.counts(microseconds: later)
        #expect(counts.channels == 1 && counts.subscriptions == 1)
    }
}
