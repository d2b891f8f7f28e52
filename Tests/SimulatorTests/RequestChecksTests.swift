import BroadsideAPNs
import Testing

@testable import BroadsideSimulator

/// One request with one thing wrong, or several in the order in which they are looked at.
@Suite struct RequestChecksTests {
    struct Case: Sendable, CustomTestStringConvertible {
        var changes: [String: String?]
        var bodyCount = 2
        var reason: Reason?
        var status: UInt16
        /// What the credential check says when it is asked.
        var credential: Reason?

        var testDescription: String { "\(changes) \(bodyCount) \(status)" }

        init(
            _ changes: [String: String?], _ status: UInt16, _ reason: Reason?, body: Int = 2,
            credential: Reason? = nil
        ) {
            self.changes = changes
            self.status = status
            self.reason = reason
            bodyCount = body
            self.credential = credential
        }
    }

    static let id = "eabeae54-14a8-11e5-b60b-1697f925ec7b"
    static let longID = String(repeating: "x", count: 64)

    static let cases: [Case] = [
        Case([:], 200, nil),
        // Method, path, token present.
        Case([":method": "GET"], 405, .methodNotAllowed),
        Case([":method": "GET", ":path": "/"], 405, .methodNotAllowed, credential: .forbidden),
        Case([":path": "/"], 404, .badPath),
        Case([":path": "/3/devices/abcd"], 404, .badPath),
        Case([":path": "/3/device/abcd/"], 404, .badPath),
        Case([":path": "/3/device/abcd?x=1"], 404, .badPath),
        Case([":path": "/3/device/"], 400, .missingDeviceToken),
        Case([":path": "/3/device"], 400, .missingDeviceToken),
        Case([":path": "/4/x"], 404, .badPath, credential: .missingProviderToken),
        // Authentication comes before all that follows.
        Case(["apns-topic": nil], 403, .missingProviderToken, credential: .missingProviderToken),
        Case(
            [":path": "/3/device/xyz"], 403, .expiredProviderToken,
            credential: .expiredProviderToken),
        // Header syntax.
        Case(["apns-id": "eabeae54"], 400, .badMessageID),
        Case(["apns-id": "eabeae5414a811e5b60b1697f925ec7b"], 400, .badMessageID),
        Case(["apns-id": "gabeae54-14a8-11e5-b60b-1697f925ec7b"], 400, .badMessageID),
        Case(["apns-id": id.uppercased()], 200, nil),
        Case(["apns-expiration": "tomorrow"], 400, .badExpirationDate),
        Case(["apns-expiration": "-1"], 400, .badExpirationDate),
        Case(["apns-expiration": "0"], 200, nil),
        Case(["apns-expiration": "1458604800"], 200, nil),
        Case(["apns-priority": "7"], 400, .badPriority),
        Case(["apns-priority": "1"], 200, nil),
        Case(["apns-priority": "10", "apns-push-type": "background"], 400, .badPriority),
        Case(["apns-priority": "5", "apns-push-type": "background"], 200, nil),
        // "Always use priority 5."
        Case(["apns-priority": "1", "apns-push-type": "background"], 400, .badPriority),
        // Without the header the priority is 10.
        Case(["apns-push-type": "background"], 400, .badPriority),
        Case(["apns-collapse-id": longID], 200, nil),
        Case(["apns-collapse-id": longID + "x"], 400, .badCollapseID),
        Case(["apns-push-type": "shout"], 400, .invalidPushType),
        Case(["apns-push-type": "Alert"], 400, .invalidPushType),
        // Topic.
        Case(["apns-topic": nil], 400, .missingTopic),
        Case(["apns-topic": ""], 400, .badTopic),
        Case(["apns-topic": "com.example app"], 400, .badTopic),
        Case(["apns-topic": "com.stranger"], 400, .topicDisallowed),
        Case(["apns-topic": "com.example.app.voip"], 200, nil),
        Case(
            ["apns-topic": "com.example.app.voip", "apns-push-type": "alert"], 400, .topicDisallowed
        ),
        Case(["apns-topic": "com.example.app.voip", "apns-push-type": "voip"], 200, nil),
        Case(["apns-push-type": "voip"], 400, .topicDisallowed),
        // Only the UID of an MDM certificate is a topic for it.
        Case(["apns-push-type": "mdm"], 400, .topicDisallowed),
        Case(["apns-topic": "com.example.other"], 400, .deviceTokenNotForTopic),
        // Body, before the token.
        Case([:], 400, .payloadEmpty, body: 0),
        Case([":path": "/3/device/xyz"], 400, .payloadEmpty, body: 0),
        Case([:], 200, nil, body: 4096),
        Case([:], 413, .payloadTooLarge, body: 4097),
        Case(
            ["apns-topic": "com.example.app.voip", "apns-push-type": "voip"], 200, nil, body: 5120),
        Case(
            ["apns-topic": "com.example.app.voip", "apns-push-type": "voip"], 413,
            .payloadTooLarge, body: 5121),
        // The topic alone says it.
        Case(["apns-topic": "com.example.app.voip"], 200, nil, body: 5120),
        Case(["apns-topic": "com.example.app.voip"], 413, .payloadTooLarge, body: 5121),
        Case(["apns-topic": "com.example.app.voip-ptt"], 413, .payloadTooLarge, body: 4097),
        // Token.
        Case([":path": "/3/device/xyz"], 400, .badDeviceToken),
        Case([":path": "/3/device/abc"], 400, .badDeviceToken),
    ]

    @Test(arguments: cases) func `A request is judged by its first fault`(_ one: Case) {
        var fields: [String: String?] = [
            ":method": "POST", ":scheme": "https", ":path": "/3/device/00fc13adff785122",
            ":authority": "localhost", "apns-topic": "com.example.app", "apns-id": Self.id,
        ]
        for (name, value) in one.changes { fields[name] = .some(value) }
        let answer = Self.response(
            fields.compactMapValues { $0 }.map { ($0, $1) }, one)
        #expect(answer.status == one.status)
        #expect(answer.reason == one.reason)
    }

    @Test(arguments: PushType.allCases)
    func `A push type is accepted with its topic, priorities and size, and no others`(
        _ type: PushType
    ) {
        // A provider token is not for device management.
        let isForToken = type.rules.credential != .managementCertificate
        let topic = "com.example.app" + (type.topicSuffix ?? "")
        for (priority, header) in [(Priority.high, "10"), (.normal, "5"), (.low, "1")] {
            for count in [type.rules.maximumPayloadCount, type.rules.maximumPayloadCount + 1] {
                let response = Self.response(
                    [
                        (":method", "POST"), (":path", "/3/device/00fc13adff785122"),
                        ("apns-topic", topic), ("apns-push-type", type.rawValue),
                        ("apns-priority", header),
                    ], Case([:], 200, nil, body: count))
                let expected: Reason? =
                    if !type.rules.priorities.allows(priority) {
                        .badPriority
                    } else if !isForToken {
                        .topicDisallowed
                    } else {
                        count > type.rules.maximumPayloadCount ? .payloadTooLarge : nil
                    }
                #expect(response.reason == expected, "\(header), \(count)")
            }
        }
    }

    @Test(arguments: ["apns-topic", "user-agent", "x-other", "cookie"])
    func `A header that occurs twice is DuplicateHeaders, except cookies`(name: String) {
        let value = name == "apns-topic" ? "com.example.app" : "a"
        let answer = Self.response(
            [
                (":method", "POST"), (":path", "/3/device/00fc13adff785122"),
                ("x-one", "a"), (name, value), (name, value),
            ], Case([:], 400, .duplicateHeaders))
        #expect((answer.reason == .duplicateHeaders) == (name != "cookie"))
    }

    @Test func `A certificate's topics decide which topic and push type it may use`() {
        func table(_ topics: [(topic: String, kind: String)]?, _ userID: String) -> TopicTable {
            TopicTable(
                CertificateScope(
                    topicsExtension: topics.map(TopicsExtension.encode), userID: userID,
                    commonName: nil, environments: []))
        }
        let several = table([("a.b", "app"), ("a.b.voip", "voip")], "a.b")
        let single = table(nil, "a.b")
        let mdm = table(nil, "com.apple.mgmt.External.x")
        let voip = table(nil, "a.b.voip")
        #expect(voip.isVoIP(nil) && !single.isVoIP(nil) && !several.isVoIP(nil))
        func refusal(_ table: TopicTable, _ topic: String?, _ type: PushType?) -> Reason? {
            var isForDevice = true
            guard let topic else {
                return table.refusal(topic: nil, type: type, isForDevice: &isForDevice)
            }
            return Array(topic.utf8).withBytes {
                table.refusal(topic: $0, type: type, isForDevice: &isForDevice)
            }
        }
        #expect(refusal(mdm, nil, .mdm) == nil)
        #expect(refusal(mdm, "com.apple.mgmt.External.x", .mdm) == nil)
        #expect(refusal(mdm, "com.apple.mgmt.External.x", .alert) == .topicDisallowed)
        #expect(refusal(several, nil, nil) == .missingTopic)
        #expect(refusal(several, "a.b", .alert) == nil)
        #expect(refusal(several, "a.b.voip", .voip) == nil)
        #expect(refusal(several, "a.b.complication", .complication) == .topicDisallowed)
        #expect(refusal(single, nil, .alert) == nil)
        #expect(refusal(single, "a.b", .alert) == nil)
        #expect(refusal(single, "a.c", .alert) == .topicDisallowed)
    }

    private static func response(_ fields: [(String, String)], _ one: Case) -> Response {
        var head = RequestHead()
        for (name, value) in fields {
            Array(name.utf8).withBytes { name in
                Array(value.utf8).withBytes { head.add(name: name, value: $0) }
            }
        }
        let checks = RequestChecks(outcome: TokenOutcome(badToken: 0, unregistered: 0, seed: 0))
        let topics = TopicTable(app: "com.example.app", otherApp: "com.example.other")
        let verdict = checks.examine(head, topics: topics) { one.credential }
        return verdict.response(bodyCount: one.bodyCount)
    }
}
