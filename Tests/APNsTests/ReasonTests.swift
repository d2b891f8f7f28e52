import Testing

@testable import BroadsideAPNs

@Suite struct ReasonTests {
    /// Codes are on disk: a changed one misreads every ledger.
    @Test func `The codes of reasons on disk never change`() {
        let codes = Reason.allCases.map { "\($0.rawValue) \($0.text)" }
        #expect(
            codes == [
                "1 BadCollapseId", "2 BadDeviceToken", "3 BadExpirationDate", "4 BadMessageId",
                "5 BadPriority", "6 BadTopic", "7 DeviceTokenNotForTopic", "8 DuplicateHeaders",
                "9 IdleTimeout", "10 InvalidPushType", "11 MissingDeviceToken", "12 MissingTopic",
                "13 PayloadEmpty", "14 TopicDisallowed", "15 FeatureNotEnabled",
                "16 BroadcastFeatureNotEnabled", "17 MissingChannelId", "18 BadChannelId",
                "19 ChannelNotRegistered", "20 BadRequestParams", "21 BadRequestPayload",
                "22 MissingChannelQueueSize", "23 CannotCreateChannelConfig",
                "24 MissingPushType", "32 BadCertificate",
                "33 BadCertificateEnvironment", "34 ExpiredProviderToken", "35 Forbidden",
                "36 InvalidProviderToken", "37 MissingProviderToken", "38 UnrelatedKeyIdInToken",
                "39 BadEnvironmentKeyIdInToken", "40 BadEnvironmentKeyInToken",
                "41 TopicMismatch", "48 BadPath",
                "52 MethodNotAllowed", "56 ExpiredToken", "57 Unregistered", "64 PayloadTooLarge",
                "72 TooManyProviderTokenUpdates", "73 TooManyRequests", "80 InternalServerError",
                "88 ServiceUnavailable", "89 Shutdown", "96 ProcessingError", "97 InvalidTokenSize",
                "98 InvalidTopicSize", "99 ProtocolError", "100 UnknownError", "128 Timeout",
                "129 ConnectionLost",
                "130 MalformedToken", "131 MissingColumn", "132 BadValue", "133 NoPayload",
                "134 Suppressed", "135 Duplicate", "136 Unparsable",
                "137 MalformedRow", "138 Filtered", "139 DeadToken", "140 FrequencyCap",
                "141 Holdout", "142 Late", "143 BadZone",
            ])
    }

    @Test(arguments: Reason.allCases) func `The text of each reason leads back to the reason`(
        reason: Reason
    ) {
        let bytes = Array(reason.text.utf8)
        #expect(Reason(text: reason.text) == reason)
        let found = Reason(text: bytes.span.bytes)
        // From 96 on the provider API uses none of them in a body.
        #expect(found == (reason.rawValue < 96 ? reason : nil))
    }

    func parse(_ body: String) -> ReasonBody {
        let bytes = Array(body.utf8)
        return ReasonBody.parse(bytes.span.bytes)
    }

    @Test
    func
        `A body's reason and timestamp are read in whatever order and with whatever other members`()
    {
        // The bodies of vector V19.
        #expect(parse("{\"reason\":\"BadDeviceToken\"}").reason == .badDeviceToken)
        let gone = parse("{\"reason\":\"Unregistered\",\"timestamp\":1458518400000}")
        #expect(gone.reason == .unregistered)
        #expect(gone.timestampMilliseconds == 1_458_518_400_000)
        #expect(gone.isWellFormed)
        let odd = parse(
            " {\n\"x\" : [1, {\"reason\":\"Shutdown\"}], \"timestamp\": 7 , \"reason\" : \"TooManyRequests \" } "
        )
        #expect(odd.reason == .tooManyRequests)
        #expect(odd.timestampMilliseconds == 7)
        let new = parse("{\"reason\":\"SomethingNew\"}")
        #expect(new.reason == nil)
        #expect(new.textRange == 11..<23)
    }

    @Test func `A body that is not an object, or has the reason elsewhere, has no reason`() {
        #expect(parse("").isWellFormed == false)
        #expect(parse("Maximum active streams violated for this endpoint.").textRange == nil)
        #expect(parse("{\"reason\":\"Timeout\"}").reason == nil)
        #expect(parse("{\"reason\":null}").textRange == nil)
        #expect(parse("[\"reason\",\"Shutdown\"]").reason == nil)
        #expect(parse("{\"a\":{\"reason\":\"Shutdown\"}}").reason == nil)
        #expect(parse("{\"reason\":\"Shutdown\",").reason == .shutdown)
    }

    @Test func `A timestamp that may be cut off at the end of the kept bytes is not read`() {
        let body = "{\"reason\":\"Unregistered\",\"timestamp\":1700000000000}"
        for count in 1..<body.utf8.count {
            let cut = parse(String(body.prefix(count)))
            #expect(cut.timestampMilliseconds == nil && !cut.isWellFormed)
        }
        #expect(parse("{\"timestamp\":17,\"rea").timestampMilliseconds == 17)
    }

    /// Texts of numbers, and the milliseconds that each of them means.
    static let timestamps: [(String, UInt64?)] = [
        ("1795469797000", 1_795_469_797_000), ("1.795469797E12", 1_795_469_797_000),
        ("1795469797000.0", 1_795_469_797_000), ("1795469797000.999", 1_795_469_797_000),
        ("17954697970000000e-4", 1_795_469_797_000), ("1.7e+3", 1700), ("15e-1", 1), ("9e-1", 0),
        ("9007199254740993.0", 9_007_199_254_740_993), ("0", 0), ("0e99999999999999999999", 0),
        ("5e-99999999999999999999", 0), ("0.0000000000000000000000017e24", 1),
        ("18446744073709551615", .max), ("1.8446744073709551615E19", .max),
        ("18446744073709551616", nil), ("1.8446744073709551616e19", nil), ("1e20", nil),
        ("1e99999999999999999999", nil), ("-1", nil), ("-1.5E3", nil), ("\"1\"", nil),
    ]

    @Test(arguments: timestamps)
    func `A timestamp is read exactly in each form of a JSON number, without parts of milliseconds`(
        text: String, milliseconds: UInt64?
    ) {
        let body = parse("{\"reason\":\"Unregistered\",\"timestamp\":\(text)}")
        #expect(body.timestampMilliseconds == milliseconds)
        #expect(body.reason == .unregistered && body.isWellFormed)
    }
}
