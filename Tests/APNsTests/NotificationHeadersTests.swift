import APNs
import Testing

@Suite struct NotificationHeadersTests {
    func errors(
        _ headers: NotificationHeaders,
        _ credential: NotificationHeaders.Credential = .providerToken
    ) -> [String] {
        headers.validate(credential: credential).filter(\.isError).map(\.option)
    }

    @Test func topics() {
        #expect(errors(NotificationHeaders(topic: "com.example.MyApp")) == [])
        #expect(errors(NotificationHeaders()) == ["topic"])
        #expect(errors(NotificationHeaders(), .certificate) == [])
        #expect(errors(NotificationHeaders(topic: "")) == ["topic"])
        #expect(errors(NotificationHeaders(topic: "com.example.MyApp ")) == ["topic"])
        let suffix = NotificationHeaders(topic: "com.example.MyApp", pushType: .voip)
        #expect(errors(suffix) == [])
        #expect(suffix.validate(credential: .providerToken).map(\.option) == ["topic"])
        let activity = NotificationHeaders(
            topic: "com.example.MyApp.push-type.liveactivity", pushType: .liveActivity)
        #expect(activity.validate(credential: .providerToken).isEmpty)
        #expect(activity.validate(credential: .certificate).map(\.option) == ["push-type"])
    }

    @Test func values() {
        #expect(NotificationHeaders(pushType: .background).priority == .considerate)
        #expect(NotificationHeaders().priority == .immediate)
        let topic = "com.example.MyApp"
        #expect(
            errors(NotificationHeaders(topic: topic, pushType: .background, priority: .immediate))
                == ["priority"])
        let full = String(repeating: "x", count: 64)
        #expect(errors(NotificationHeaders(topic: topic, collapseID: full)) == [])
        for collapseID in ["", full + "x", " a", "a\t", "a\nb", "a\u{7f}"] {
            #expect(
                errors(NotificationHeaders(topic: topic, collapseID: collapseID)) == ["collapse-id"]
            )
        }
    }

    @Test func expirations() {
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

    @Test func payloadLimits() {
        #expect(PayloadRules.maximumCount(for: .alert) == 4_096)
        #expect(PayloadRules.maximumCount(for: .voip) == 5_120)
    }
}
