import BroadsideAPNs
import BroadsidePayloads
import Testing

@Suite struct PayloadLintTests {
    struct Case: Sendable, CustomTestStringConvertible {
        var payload: String
        var pushType: PushType
        var isError: Bool
        var line: Int?
        var column: Int?
        var says: String

        init(
            _ payload: String, _ pushType: PushType = .alert, isError: Bool = true,
            at place: (Int, Int)? = nil, says: String
        ) {
            self.payload = payload
            self.pushType = pushType
            self.isError = isError
            line = place?.0
            column = place?.1
            self.says = says
        }

        var testDescription: String { "\(pushType.rawValue) \(payload)" }
    }

    static let good: [(String, PushType)] = [
        (#"{"aps":{"alert":"Hello"}}"#, .alert),
        (
            #"{"aps":{"alert":{"title":"A","loc-key":"K","loc-args":["x"],"action-loc-key":null},"#
                + #""badge":0,"sound":"default","thread-id":"t","mutable-content":1},"#
                + #""story":{"aps":{"x":1},"sound":2},"list":[{"a":1},{"a":1}]}"#,
            .alert
        ),
        (
            #"{"aps":{"alert":{"loc-key":"K","loc-args":["x","y","x"]}},"list":["a","a",["b"],{"c":[1]}],"#
                + #""event":"opened","category":{"id":1}}"#,
            .alert
        ),
        (#"{"aps":{"alert":"x","sound":{"critical":1,"name":"a","volume":0.5}}}"#, .alert),
        (#"{"aps":{"content-available":1},"id":7}"#, .background),
        (#"{"aps":{"content-changed":true}}"#, .widgets),
        (#"{"mdm":"magic"}"#, .mdm),
        (
            #"{"aps":{"encryptedData":"c2VhbGVk","sessionIdentifier":"7d0cbb6e","keyID":"a2V5","#
                + #""messageIndex":"42"}}"#, .accessory
        ),
        (#"{"aps":{"alert":"x"},"keyID":1,"messageIndex":2}"#, .alert),
        (
            #"{"aps":{"event":"start","timestamp":1790000000,"content-state":{},"attributes-type":"T","#
                + #""attributes":{},"alert":{"title":{"loc-key":"K"},"body":"b","sound":"s"}}}"#,
            .liveActivity
        ),
        (#"{"aps":{"event":"end","timestamp":1790000000,"content-state":{}}}"#, .liveActivity),
        // The ends of ranges, and what another push type has no range for.
        (#"{"aps":{"alert":"x","relevance-score":0,"sound":{"critical":1,"volume":1}}}"#, .alert),
        (#"{"aps":{"alert":"x","relevance-score":1,"sound":{"critical":1,"volume":0}}}"#, .alert),
        (
            #"{"aps":{"event":"update","timestamp":99999999999,"content-state":{},"#
                + #""relevance-score":100}}"#, .liveActivity
        ),
        (
            #"{"aps":{"event":"end","timestamp":1577836800,"content-state":{},"#
                + #""dismissal-date":0,"stale-date":1}}"#, .liveActivity
        ),
        (#"{"aps":{"event":"end","timestamp":"{{t:int}}","content-state":{}}}"#, .liveActivity),
        (#"{"aps":{"alert":"x","interruption-level":"time-sensitive","badge":7}}"#, .alert),
        (#"{"aps":{"badge":1}}"#, .alert), (#"{"aps":{"sound":"x"}}"#, .alert),
        // Keys of the sender's own.
        (#"{"aps":{"alert":"x"},"title":"t","body":"b"}"#, .alert),
        (#"{"aps":{"badge":3},"title":"t","body":"b"}"#, .alert),
        // With these push types, the app reads the whole payload.
        (#"{"aps":{},"alert":"Call from Ann","sound":"ring"}"#, .voip),
        (#"{"aps":{},"alert":"x","badge":1}"#, .pushToTalk),
        // Rows fill these in: they may be anything, or what their defaults are.
        (#"{"aps":{"alert":"{{a}}","interruption-level":"{{level}}"}}"#, .alert),
        (#"{"aps":{"alert":"x","interruption-level":"{{level|active}}"}}"#, .alert),
        (#"{"aps":{"alert":"x","interruption-level":"act{{rest|ive}}"}}"#, .alert),
        (#"{"aps":{"alert":"x","badge":"{{count:int}}","mutable-content":"{{m:int}}"}}"#, .alert),
        (#"{"aps":{"content-changed":"{{changed:bool}}"}}"#, .widgets),
        (#"{"aps":{"alert":"{{text}}"}}"#, .alert),
        (#"{"aps":{"alert":"Hi {{name |friend}}, {{a|b c}}{{d| }}"}}"#, .alert),
        // One text is enough.
        (#"{"aps":{"alert":{"title":"","body":"b"}}}"#, .alert),
        (#"{"aps":{"alert":{"title":"","body":"{{text}}"}}}"#, .alert),
        (#"{"aps":{"alert":{"body":"","loc-key":"K"}}}"#, .alert),
    ]

    @Test(arguments: good)
    func `A valid payload has no findings`(payload: String, pushType: PushType) {
        let bytes = Array(payload.utf8)
        #expect(PayloadLint.findings(bytes.span.bytes, pushType: pushType) == [])
    }

    static let bad: [Case] = [
        .init(#"{"aps":{"allert":"x"}}"#, at: (1, 9), says: "did you mean alert?"),
        .init(#"{"aps":{"alert":"x","contentAvailable":1}}"#, at: (1, 21), says: "content-avail"),
        .init(#"{"asp":{"alert":"x"}}"#, at: (1, 2), says: "did you mean aps?"),
        .init(#"{"aps":{"alert":{"titel":"x","body":"y"}}}"#, at: (1, 18), says: "mean title?"),
        .init("{\"aps\":{\"alert\":\"ä\",\n \"alert\":\"y\"}}", at: (2, 2), says: "occurs twice"),
        .init(
            #"{"aps":{"alert":"x"},"a\u0062":1,"ab":2}"#, at: (1, 34), says: "'ab' occurs twice"),
        .init(#"{"aps":{"badge":"3"}}"#, at: (1, 17), says: "'badge' is a string"),
        .init(#"{"aps":{"badge":-1}}"#, at: (1, 17), says: "whole number"),
        .init(#"{"aps":{"alert":["x"]}}"#, at: (1, 17), says: "or an object"),
        .init(#"{"aps":{"alert":{"body":1}}}"#, at: (1, 25), says: "must be a string"),
        .init(#"{"aps":{"alert":{"loc-key":"k","loc-args":[1]}}}"#, says: "array of strings"),
        .init(#"{"aps":[]}"#, at: (1, 8), says: "must be an object"),
        .init(
            #"{"aps":{"alert":"{\"title\":\"T\"}"}}"#, at: (1, 17),
            says: "'alert' is a text that contains a JSON object"),
        .init(
            #"{"aps":{"alert":" { \"body\" : \"{{b|x}}\" } ","badge":1}}"#,
            says: "write the object itself"),
        .init(
            #"{"aps":{"badge":1,"alert":"{\"title\":\"Hi {{name}}\"}"},"a":"{}"}"#, at: (1, 27),
            says: "write the object itself"),
        .init(#"{"aps":{"alert":"{\"loc-key\":\"K\"}"}}"#, says: "write the object itself"),
        .init(#"{"aps":{"alert":"x","interruption-level":"loud"}}"#, says: "time-sensitive"),
        .init(#"{"aps":{"alert":"x","relevance-score":2}}"#, says: "from 0 to 1"),
        .init(
            #"{"aps":{"alert":"x","sound":{"critical":1,"volume":3}}}"#, says: "'volume' must"),
        .init(#"{"text":"x"}"#, says: "has no 'aps'"),
        .init(#"{"mdm":"{{magic}}"}"#, at: (1, 2), says: "add --push-type mdm"),
        .init(#"{"mdm":"x","a":1}"#, .background, at: (1, 2), says: "add --push-type mdm"),
        .init(#"{"aps":{"content-available":1}}"#, says: "push type background"),
        .init(
            #"{"aps":{"content-available":1,"sound":""}}"#, .background, says: "can't have 'sound'"),
        .init(#"{"aps":{}}"#, .background, says: "'content-available': 1"),
        .init(
            #"{"aps":{"event":"start","timestamp":1790000000}}"#, .liveActivity,
            says: "'attributes'"),
        .init(
            #"{"aps":{"event":"begin","timestamp":1790000000}}"#, .liveActivity,
            says: "start, update"),
        .init(#"{"aps":{}}"#, .widgets, says: "content-changed"),
        .init(#"{"aps":{}}"#, .mdm, says: "PushMagic"),
        .init(#"{"mdm":"x","a":1}"#, .mdm, says: "remove 'a'"),
        .init(#"{"aps":{"alert":"x","colour":1}}"#, isError: false, says: "beside aps"),
        .init(#"{"aps":{"alert":"x"},"badge":1}"#, isError: false, says: "put it inside"),
        .init(
            #"{"aps":{"alert":{"title":"T","badge":3}}}"#, isError: false, at: (1, 30),
            says: "'badge' is not a key of alert, so devices ignore it: put it beside alert, inside"
        ),
        .init(
            #"{"aps":{"alert":{"title":"T","sound":"default"}}}"#, isError: false,
            says: "put it beside alert, inside aps"),
        .init(
            #"{"aps":{"alert":{"title":"T","thread-id":"t"}}}"#, isError: false,
            says: "put it beside alert, inside aps"),
        .init(
            #"{"aps":{"alert":"x","sound":{"name":"x","badge":1}}}"#, isError: false,
            says: "put it beside sound, inside aps"),
        .init(
            #"{"aps":{"alert":{"title":"T","alert":"x"}}}"#, isError: false, says: "remove it"),
        .init(
            #"{"aps":{"alert":{"title":"T","event":"x"}}}"#, isError: false, says: "remove it"),
        .init(
            #"{"aps":{"alert":{"title":"T","summary-arg":"x"}}}"#, isError: false,
            says: "remove it"),
        .init(#"{"aps":{"alert":"x"},"id":null}"#, isError: false, says: "is null"),
        .init(#"{"aps":{"alert":"x","event":"end"}}"#, isError: false, says: "liveactivity"),
        .init(#"{"aps":{"sound":"x","mutable-content":1}}"#, isError: false, says: "extensions"),
        .init(#"{"aps":{"alert":{"launch-image":"i"}}}"#, isError: false, says: "no title or body"),
        .init(#"{"aps":{"alert":""}}"#, isError: false, at: (1, 9), says: "'alert' is empty"),
        .init(#"{"aps":{"alert":" \n","sound":"x"}}"#, isError: false, says: "'alert' is empty"),
        .init(
            #"{"aps":{"alert":{"title":"","body":" "}}}"#, isError: false, at: (1, 9),
            says: "only empty texts"),
        .init(
            #"{"aps":{"alert":"Hi {{name | friend}}"}}"#, isError: false, at: (1, 21),
            says: "the default of {{name}} is sent with the blanks around it"),
        .init(#"{"aps":{"alert":"{{name|friend }}"}}"#, isError: false, says: "the blanks around"),
        .init(
            #"{"aps":{"alert":"Hi \u007b\u007Bname}}"}}"#, isError: false, at: (1, 27),
            says: "{{ with an escaped brace is sent as text"),
        .init(#"{"aps":{"alert":"{\u007bname}}"}}"#, isError: false, says: "an escaped brace"),
        .init(#"{"aps":{"alert":"\u007b{name}}"}}"#, isError: false, says: "an escaped brace"),
        .init(#"{"aps":{"alert":{"body":"b","loc-args":[]}}}"#, isError: false, says: "'loc-key'"),
        .init("{}", isError: false, says: "Wallet"),
        .init("{}", .background, says: "has no 'aps'"),
        .init("{}", .liveActivity, says: "has no 'aps'"),
        .init("{}", .widgets, says: "has no 'aps'"),
        .init("{}", .accessory, says: "has no 'aps'"),
        .init(
            #"{"aps":{"event":"end","timestamp":1700000000000,"content-state":{}}}"#,
            .liveActivity, says: "milliseconds"),
        .init(
            #"{"aps":{"event":"end","timestamp":100000000000,"content-state":{}}}"#,
            .liveActivity, at: (1, 35), says: "'timestamp' is in seconds"),
        .init(
            #"{"aps":{"event":"end","timestamp":1790000000,"content-state":{},"stale-date":100000000000}}"#,
            .liveActivity, isError: false, says: "'stale-date' is in seconds"),
        .init(
            #"{"aps":{"event":"end","timestamp":1790000000,"content-state":{},"dismissal-date":1e12}}"#,
            .liveActivity, isError: false, says: "'dismissal-date' is in seconds"),
        .init(
            #"{"aps":{"event":"end","timestamp":100000000000000,"content-state":{}}}"#,
            .liveActivity, says: "looks like microseconds: divide it by 1,000,000"),
        .init(
            #"{"aps":{"event":"end","timestamp":785000000,"content-state":{}}}"#,
            .liveActivity, isError: false, at: (1, 35), says: "seconds since 2001: add 978307200"),
        .init(
            #"{"aps":{"event":"end","timestamp":599529599,"content-state":{}}}"#,
            .liveActivity, isError: false, at: (1, 35), says: "'timestamp' is before 2020"),
        .init(
            #"{"aps":{"event":"end","timestamp":1577836799,"content-state":{}}}"#,
            .liveActivity, isError: false, says: "seconds since 2001"),
        .init(
            #"{"aps":{"alert":"x","sound":{"critical":1,"volume":1.5}}}"#, at: (1, 52),
            says: "'volume' must"),
        .init(#"{"aps":{"alert":"x","relevance-score":-0.1}}"#, says: "from 0 to 1"),
        .init(#"{"aps":{"alert":"x","badge":1.5}}"#, says: "whole number"),
        .init(
            #"{"aps":{"alert":"x","mutable-content":0}}"#, isError: false, at: (1, 39),
            says: "'mutable-content' is 0"),
        .init(
            #"{"aps":{"alert":"x","sound":{"critical":2,"volume":1}}}"#, isError: false,
            says: "'critical' is 2"),
        .init(#"{"aps":{"content-available":0}}"#, .background, says: "background push must be 1"),
        .init(
            #"{"aps":{"content-available":1,"alert":"x"}}"#, .background, says: "can't have 'alert'"
        ),
        .init(
            #"{"aps":{"content-available":1,"badge":1}}"#, .background, says: "can't have 'badge'"),
        .init(
            #"{"aps":{},"alert":"x"}"#, .location, isError: false, says: "'alert' is beside aps"),
        .init(#"{"a":1}"#, .voip, isError: false, says: "Apple requires in every payload"),
        .init(#"{"to":"x"}"#, at: (1, 2), says: "'to', as Firebase's messages do"),
        .init(#"{"data":{"notification":1}}"#, .background, says: "'data', as Firebase's"),
        .init(
            #"{"default":"Hi","APNS":"{\"aps\":{\"alert\":\"Hi\"}}"}"#, at: (1, 17),
            says: "'APNS', as Amazon SNS's messages do"),
        .init(#"{"APNS_SANDBOX":"{}"}"#, says: "inside 'APNS_SANDBOX' as text"),
        .init(
            #"{"notifications":[{"tokens":["t"],"platform":1,"message":"Hi"}]}"#, at: (1, 2),
            says: "'notifications', as gorush's requests do: APNs needs"),
        .init(
            #"{"id":1,"payload":{"aps":{"alert":"Hi"}}}"#, at: (1, 9),
            says: "has 'aps' inside 'payload'"),
        .init(#"{"data":{"aps":{"alert":"Hi"}}}"#, says: "without 'data' around it"),
        .init(#"{"notifications":3}"#, says: "has no 'aps': add it"),
        .init(#"{"payload":{"alert":"Hi"}}"#, says: "has no 'aps': add it"),
        .init(#"{"mdm":1}"#, .mdm, at: (1, 8), says: "'mdm' is a number"),
        .init(#"{"mdm":" "}"#, .mdm, isError: false, at: (1, 2), says: "'mdm' is empty"),
        .init(#"{"aps":{"content-changed":false}}"#, .widgets, says: "content-changed"),
        .init(
            #"{"aps":{"encryptedData":"x","sessionIdentifier":"x","keyID":"x"}}"#, .accessory,
            at: (1, 2), says: "messageIndex"),
        .init(
            #"{"aps":{"encryptedData":"x","sessionIdentifier":"x","keyID":"x","messageIndex":42}}"#,
            .accessory, says: "must be a string"),
        .init(
            #"{"aps":{"encryptedData":"x","sessionIdentifier":"x","keyID":"x","messageIndex":"4a"}}"#,
            .accessory, says: "whole number in quotes"),
        .init(#"{"alert":"x"}"#, .accessory, says: "has no 'aps'"),
        .init(#"{"aps":{"alert":"x","keyID":"y"}}"#, isError: false, says: "accessory"),
        .init(#"{"aps":{"event":"update"}}"#, .liveActivity, says: "needs 'timestamp'"),
        .init(#"{"aps":{"event":"update"}}"#, .liveActivity, says: "needs 'content-state'"),
        .init(#"{"aps":{"event":"start"}}"#, .liveActivity, says: "needs 'attributes-type'"),
        .init(#"{"aps":{"event":"start"}}"#, .liveActivity, says: "needs 'alert'"),
        .init(
            #"{"aps":{"event":"start","alert":"x"}}"#, .liveActivity, isError: false, at: (1, 33),
            says: "'alert' is a string"),
        .init(
            #"{"aps":{"event":"start","sound":"x"}}"#, .liveActivity, isError: false, at: (1, 25),
            says: "'sound' of a Live Activity belongs in 'alert'"),
        .init(
            #"{"aps":{"input-push-channel":"bm90 base64!"}}"#, .liveActivity, at: (1, 30),
            says: "is not a channel ID"),
        .init(
            #"{"aps":{"input-push-channel":"YQ==","input-push-token":1}}"#, .liveActivity,
            isError: false, at: (1, 37), says: "exclude each other"),
        .init(#"{"aps":{}}"#, isError: false, says: "devices show nothing"),
        .init(
            #"{"aps":{"title":"Sale","body":"Today only"}}"#, at: (1, 2),
            says: "title and body belong in aps.alert"),
        .init(
            #"{"aps":{"content-available":1,"body":"x"}}"#, says: "title and body belong in aps"),
        .init(
            #"{"aps":{"title":"Sale"}}"#, isError: false, at: (1, 9),
            says: "put it inside alert"),
        .init(
            #"{"aps":{"category":"c","thread-id":"t"},"id":7}"#, at: (1, 2),
            says: "must show something: add an alert"),
        .init(
            #"{"aps":{"sound":"default"},"alert":{"title":"a","body":"b"}}"#, at: (1, 28),
            says: "'alert' is beside aps, where devices ignore it, so they show no text"),
        .init(#"{"aps":{"badge":1},"alert":"{{text}}"}"#, says: "so they show no text"),
        .init(#"{"aps":{},"alert":{"loc-key":"K"}}"#, says: "so they show no text"),
        .init(#"{"aps":{"alert":"x"},"alert":"y"}"#, isError: false, says: "put it inside aps"),
        .init(#"{"aps":{"badge":1},"alert":true}"#, isError: false, says: "put it inside aps"),
        .init(
            #"{"aps":{"badge":1},"alert":{"id":7}}"#, isError: false, says: "put it inside aps"),
        .init(
            #"{"aps":{"badge":1,"content-available":1},"alert":"x"}"#, isError: false,
            says: "put it inside aps"),
        .init(
            #"{"aps":{"title":"t","body":"b","sound":"default"}}"#, at: (1, 2),
            says: "devices show no text, because title and body belong in aps.alert"),
        .init(#"{"aps":{"badge":1,"subtitle":"{{a}}"}}"#, says: "belong in aps.alert"),
        .init(
            #"{"aps":{"alert":{"body":"b"},"title":"t"}}"#, isError: false,
            says: "put it inside alert"),
        .init(#"{"aps":{"mutable-content":1}}"#, at: (1, 2), says: "nothing to show"),
        .init(#"{"aps":{"url-args":["x"]}}"#, says: "nothing to show"),
        .init(#"{"aps":{"id":7}}"#, says: "nothing to show"),
        .init(
            #"{"aps":{"event":"end","timestamp":1790000000,"content-state":{}}}"#,
            says: "send it with push type liveactivity"),
        .init(#"{"aps":{"content-changed":true}}"#, says: "send it with push type widgets"),
        .init(#"{"aps":{"allert":"x"}}"#, isError: false, says: "devices show nothing"),
        .init(
            #"{"aps":{"alert":""}}"#, isError: false, says: "'alert' is empty: devices show nothing"
        ),
        .init(
            #"{"aps":{"alert":" ","badge":1}}"#, isError: false,
            says: "'alert' is empty: devices show no text"),
        .init(
            #"{"aps":{"alert":{"loc-args":[]},"sound":"x"}}"#, isError: false,
            says: "'alert' has no title or body: devices show no text"),
        .init(
            #"{"aps":{"alert":{"title":""},"sound":"x"}}"#, isError: false,
            says: "'alert' has only empty texts: devices show no text"),
        .init(
            #"{"aps":{"alert":{"title":"t","title-loc-args":["x"]}}}"#, isError: false,
            says: "'title-loc-args' does nothing"),
        .init(
            #"{"aps":{"alert":{"title":"t","subtitle-loc-args":["x"]}}}"#, isError: false,
            says: "'subtitle-loc-args' does nothing"),
        // Defaults may go out as they are; a number that rows fill in stands for any.
        .init(
            #"{"aps":{"alert":"x","interruption-level":"{{level|loud}}"}}"#, says: "time-sensitive"),
        .init(#"{"aps":{"alert":"x","badge":"{{count:int|-1}}"}}"#, says: "whole number"),
        .init(#"{"aps":{"alert":"x","badge":"{{on:bool}}"}}"#, says: "'badge' is true or false"),
        .init(#"{"aps":{"alert":"x","badge":"{{count}}"}}"#, says: "'badge' is a string"),
        .init(#"{"aps":{"content-changed":"{{changed:bool|false}}"}}"#, .widgets, says: "changed"),
    ]

    @Test(arguments: bad)
    func `A payload against Apple's rules has its finding at its place`(test: Case) {
        let bytes = Array(test.payload.utf8)
        let findings = PayloadLint.findings(bytes.span.bytes, pushType: test.pushType)
        let found = findings.first {
            $0.isError == test.isError && $0.problem.message.contains(test.says)
        }
        #expect(found != nil, "\(findings)")
        if test.line != nil {
            #expect(found?.problem.line == test.line, "\(findings)")
            #expect(found?.problem.column == test.column, "\(findings)")
        }
    }

    @Test(
        arguments: [
            ("1790000000", 1_790_003_600, false), ("1790000000", 1_790_003_601, true),
            ("1790000000", 1_789_996_400, false), ("1790000000", 1_789_996_399, true),
            ("99999999999", 1_790_000_000, true), (#""{{t:int}}""#, 1_790_003_601, false),
            (#""{{t:int|1700000000}}""#, 1_790_003_601, false),
            (#""{{t:int|1900000000}}""#, 1_790_003_601, false),
        ] as [(String, UInt64, Bool)])
    func `A Live Activity's timestamp is at most an hour old or ahead`(
        timestamp: String, now: UInt64, isFar: Bool
    ) {
        let text = #"{"aps":{"event":"end","timestamp":\#(timestamp),"content-state":{}}}"#
        let findings = PayloadLint.findings(
            Array(text.utf8).span.bytes, pushType: .liveActivity, now: now)
        #expect(findings.count == (isFar ? 1 : 0), "\(findings)")
        #expect(findings.allSatisfy { !$0.isError })
        let isOld = Double(timestamp) ?? 0 < Double(now)
        #expect(
            findings.allSatisfy {
                $0.problem.message.contains(
                    isOld ? "more than an hour ago" : "more than an hour from now")
            })
        if timestamp == "1790000000" {
            #expect(
                findings.allSatisfy { $0.problem.message.contains("'timestamp' is 2026-09-21T") })
        }
        // Other push types have no such rule.
        let other = PayloadLint.findings(
            Array(#"{"aps":{"alert":"x","timestamp":1}}"#.utf8).span.bytes, pushType: .alert,
            now: now)
        #expect(!other.contains { $0.problem.message.contains("'timestamp' is 1970") }, "\(other)")
    }

    @Test(arguments: [
        #"{\"code\":\"title\"}"#, #"{\"title\":\"T\""#, #"{title}"#, #"[{\"title\":1}]"#,
        #"\"title\""#,
        "{{text}}", "{{{{title}}}}", "{}",
    ])
    func `A text with braces is an alert`(text: String) {
        let bytes = Array(#"{"aps":{"alert":"\#(text)"}}"#.utf8)
        #expect(PayloadLint.findings(bytes.span.bytes, pushType: .alert) == [])
    }

    @Test func `An alert that a row's value makes a JSON object is a warning`() {
        let bytes = Array(#"{"aps":{"alert":"{\"title\":\"T\"}"}}"#.utf8)
        let found = PayloadLint.findings(
            bytes.span.bytes, pushType: .alert, isFilledIn: true)
        #expect(found.map(\.isError) == [false])
    }

    @Test func `An empty alert payload is an error unless its topic may be of a Wallet pass`() {
        for (topic, isError) in [
            (nil, false), ("pass.com.example.card", false), ("com.example.App", true),
        ] as [(String?, Bool)] {
            let found = PayloadLint.findings(
                Array("{}".utf8).span.bytes, pushType: .alert, topic: topic)
            #expect(found.map(\.isError) == [isError], "\(topic ?? "-")")
        }
    }

    @Test func `A Live Activity's payload of push type alert has one error, also with an alert`() {
        let text =
            #"{"aps":{"timestamp":1790000000,"event":"start","content-state":{},"attributes-type":"T","#
            + #""attributes":{},"alert":{"title":"a"}}}"#
        let found = PayloadLint.findings(Array(text.utf8).span.bytes, pushType: .alert)
        #expect(found.map(\.isError) == [true])
        #expect(found[0].problem.message.hasSuffix("send it with push type liveactivity"))
        let other = #"{"aps":{"alert":"x","event":"y"}}"#
        let warnings = PayloadLint.findings(Array(other.utf8).span.bytes, pushType: .alert)
        #expect(warnings.map(\.isError) == [false])
    }

    @Test func `Findings come in the order of the text, and those about the whole last`() {
        let text = #"{"aps":{"alert":"x","badge":-1,"colour":1,"sound":5},"id":null,"id":1}"#
        let findings = PayloadLint.findings(Array(text.utf8).span.bytes, pushType: .alert)
        #expect(findings.map(\.problem.column) == [29, 32, 51, 59, 64])
        #expect(findings.map(\.isError) == [true, false, true, false, true])
        // One that takes as many findings as it has: none is told twice, none is left out.
        let empty = PayloadLint.findings(Array("{}".utf8).span.bytes, pushType: .alert)
        #expect(empty.count == 1 && empty[0].problem.line == nil)
    }

    @Test(
        arguments: [
            (#"{"aps":{"alert":"x"}}"#, .alert), (#"{"aps":{"content-available":1}}"#, .background),
            (#"{"aps":{"content-available":1,"badge":1}}"#, .alert),
            (#"{"aps":{"content-available":1,"sound":"x"},"mdm":"m"}"#, .alert),
            (#"{"aps":{"content-available":1,"alert":"x"}}"#, .alert), (#"{"mdm":"m"}"#, .mdm),
            (#"{"aps":{"badge":0},"mdm":"m"}"#, .alert), ("{}", .alert), ("[", .alert),
        ] as [(String, PushType)])
    func `A payload without push type is taken for the type that its keys show`(
        payload: String, pushType: PushType
    ) {
        #expect(PayloadLint.legacyPushType(Array(payload.utf8).span.bytes) == pushType)
    }
}
