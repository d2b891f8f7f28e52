import BroadsideAPNs
import Testing

@Suite struct NotificationHeadersTests {
    func errors(
        _ headers: NotificationHeaders,
        _ credential: NotificationHeaders.Credential = .providerToken
    ) -> [NotificationHeaders.Field] {
        headers.validate(credential: credential).filter(\.isError).map(\.field)
    }

    @Test func `A topic is one bundle ID, and a push type has to fit topic and credential`() {
        #expect(errors(NotificationHeaders(topic: "com.example.MyApp")) == [])
        #expect(errors(NotificationHeaders()) == [.topic])
        #expect(errors(NotificationHeaders(), .certificate) == [])
        #expect(errors(NotificationHeaders(topic: "")) == [.topic])
        #expect(errors(NotificationHeaders(topic: "com.example.MyApp ")) == [.topic])
        #expect(errors(NotificationHeaders(topic: "com.example.A,com.example.B")) == [.topic])
        #expect(errors(NotificationHeaders(topic: "com.Example_1.My-App")) == [])
        let suffix = NotificationHeaders(topic: "com.example.MyApp", pushType: .voip)
        #expect(errors(suffix) == [.topic])
        let activity = NotificationHeaders(
            topic: "com.example.MyApp.push-type.liveactivity", pushType: .liveActivity)
        #expect(activity.validate(credential: .providerToken).isEmpty)
        #expect(errors(activity, .certificate) == [.pushType])
        let management = NotificationHeaders(topic: "com.apple.mgmt.External.x", pushType: .mdm)
        #expect(errors(management, .certificate) == [])
        #expect(errors(management) == [.pushType])
        for type in PushType.allCases where type != .mdm {
            let other = NotificationHeaders(topic: management.topic, pushType: type)
            #expect(errors(other, .certificate).contains(.topic), "\(type)")
        }
    }

    @Test(arguments: [
        ("1592994573", true), ("ABCDE12345.com.example.MyApp", true), ("com.example.MyApp", false),
        ("1234567890.com.example.MyApp", false), ("ABCDEFGHIJ.com.example", false),
        ("ABCDE1234.com.example", false), ("abcde12345.com.example", false),
    ])
    func `A number of the App Store, or a team ID in front of the bundle ID, is a warning`(
        topic: String, isSuspicious: Bool
    ) {
        let problems = NotificationHeaders(topic: topic).validate(credential: .providerToken)
        #expect(problems.count == (isSuspicious ? 1 : 0))
        #expect(problems.allSatisfy { !$0.isError && $0.field == .topic })
    }

    @Test(arguments: PushType.allCases)
    func `A topic's suffix has to fit the push type`(type: PushType) {
        let bundle = type == .mdm ? "com.apple.mgmt.External.x" : "com.example.MyApp"
        let right = NotificationHeaders(topic: bundle + (type.topicSuffix ?? ""), pushType: type)
        #expect(right.validate(credential: .providerToken).allSatisfy { $0.field != .topic })
        for other in PushType.allCases where other.topicSuffix != type.topicSuffix {
            let wrong = NotificationHeaders(
                topic: "com.example.MyApp" + (other.topicSuffix ?? ""), pushType: type)
            let found = wrong.validate(credential: .providerToken)
            #expect(found.map(\.field).contains(.topic), "\(type) \(other)")
            let isByChance =
                type.topicSuffix == nil && type != .mdm
                && (other == .voip || other == .complication)
            #expect(found.contains { $0.isError && $0.field == .topic } != isByChance)
        }
    }

    @Test func `A push type refuses the priorities that Apple does not allow for it`() {
        func options(_ type: PushType, _ priority: Priority) -> [NotificationHeaders.Field] {
            errors(
                NotificationHeaders(
                    topic: "com.example.MyApp" + (type.topicSuffix ?? ""), pushType: type,
                    priority: priority))
        }
        for priority in Priority.allCases {
            #expect(options(.alert, priority) == [])
            #expect(options(.background, priority).isEmpty == (priority == .normal))
            #expect(options(.liveActivity, priority).isEmpty == (priority != .low))
            #expect(options(.location, priority).isEmpty == (priority != .low))
            #expect(options(.accessory, priority).isEmpty)
        }
    }

    @Test
    func `Priority follows the push type, and a collapse ID has 1 to 64 printable characters`() {
        #expect(NotificationHeaders(pushType: .background).priority == .normal)
        #expect(NotificationHeaders().priority == .high)
        let topic = "com.example.MyApp"
        #expect(
            errors(NotificationHeaders(topic: topic, pushType: .background, priority: .high))
                == [.priority])
        let full = String(repeating: "x", count: 64)
        #expect(errors(NotificationHeaders(topic: topic, collapseID: full)) == [])
        for collapseID in ["", full + "x", " a", "a\t", "a\nb", "a\u{7f}"] {
            #expect(
                errors(NotificationHeaders(topic: topic, collapseID: collapseID)) == [.collapseID]
            )
        }
    }

    @Test func `An expiration in milliseconds is refused, and the problem has its seconds`() {
        for (expiration, seconds) in [
            (1_767_290_400, nil), (99_999_999_999, nil), (100_000_000_000, 100_000_000),
            (1_767_290_400_000, 1_767_290_400),
        ] as [(UInt64, UInt64?)] {
            let headers = NotificationHeaders(
                topic: "com.example.MyApp", expirationUnixSeconds: expiration)
            #expect(
                headers.validate(credential: .providerToken).map(\.kind)
                    == (seconds.map { [.expirationInMilliseconds(seconds: $0)] } ?? []))
            #expect(errors(headers) == (seconds == nil ? [] : [.expiration]))
        }
    }

    @Test func `An expiration is a Unix time or a + with s, m, h or d, and nothing else`() {
        #expect(Expiration("0") == .at(0))
        #expect(Expiration("1458604800") == .at(1_458_604_800))
        #expect(Expiration("+90s") == .after(90))
        #expect(Expiration("+2h") == .after(7_200))
        #expect(Expiration("+15m") == .after(900))
        #expect(Expiration("+1d") == .after(86_400))
        #expect(Expiration("+2h")?.unixSeconds(startUnixSeconds: 1_000) == 8_200)
        for text in ["", "+", "+s", "+5", "-5", "5s", "+-5s", "+1w", "1.5", "+99999999999999d"] {
            #expect(Expiration(text) == nil, "\(text)")
        }
    }

    @Test func `A payload may have 4,096 bytes, and 5,120 for voip`() {
        #expect(PayloadRules.maximumCount(for: .alert) == 4_096)
        #expect(PayloadRules.maximumCount(for: .voip) == 5_120)
    }
}
