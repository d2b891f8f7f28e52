import APNs
import Campaign
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
            #"{"aps":{"event":"start","timestamp":1,"content-state":{},"attributes-type":"T","#
                + #""attributes":{},"alert":{"title":{"loc-key":"K"},"body":"b","sound":"s"}}}"#,
            .liveActivity
        ),
        (#"{"aps":{"event":"end","timestamp":1,"content-state":{}}}"#, .liveActivity),
    ]

    @Test("Good payloads have no findings", arguments: good)
    func acceptsGood(payload: String, pushType: PushType) {
        let bytes = Array(payload.utf8)
        #expect(PayloadLint.findings(bytes.span.bytes, pushType: pushType) == [])
    }

    static let bad: [Case] = [
        .init(#"{"aps":{"allert":"x"}}"#, at: (1, 9), says: "did you mean alert?"),
        .init(#"{"aps":{"alert":"x","contentAvailable":1}}"#, at: (1, 21), says: "content-avail"),
        .init(#"{"asp":{"alert":"x"}}"#, at: (1, 2), says: "did you mean aps?"),
        .init(#"{"aps":{"alert":{"titel":"x","body":"y"}}}"#, at: (1, 18), says: "mean title?"),
        .init("{\"aps\":{\"alert\":\"ä\",\n \"alert\":\"y\"}}", at: (2, 2), says: "there twice"),
        .init(
            #"{"aps":{"alert":"x"},"a\u0062":1,"ab":2}"#, at: (1, 34), says: "'ab' is there twice"),
        .init(#"{"aps":{"badge":"3"}}"#, at: (1, 17), says: "'badge' is a string"),
        .init(#"{"aps":{"badge":-1}}"#, at: (1, 17), says: "whole number"),
        .init(#"{"aps":{"alert":["x"]}}"#, at: (1, 17), says: "or an object"),
        .init(#"{"aps":{"alert":{"body":1}}}"#, at: (1, 25), says: "must be a string"),
        .init(#"{"aps":{"alert":{"loc-key":"k","loc-args":[1]}}}"#, says: "array of strings"),
        .init(#"{"aps":[]}"#, at: (1, 8), says: "must be an object"),
        .init(#"{"aps":{"alert":"x","interruption-level":"loud"}}"#, says: "time-sensitive"),
        .init(#"{"aps":{"alert":"x","relevance-score":2}}"#, says: "from 0 to 1"),
        .init(
            #"{"aps":{"alert":"x","sound":{"critical":1,"volume":3}}}"#, says: "'volume' must"),
        .init(#"{"text":"x"}"#, says: "has no 'aps'"),
        .init(#"{"aps":{"content-available":1}}"#, says: "push type background"),
        .init(#"{"aps":{"content-available":1,"sound":""}}"#, .background, says: "no 'sound'"),
        .init(#"{"aps":{}}"#, .background, says: "'content-available': 1"),
        .init(#"{"aps":{"event":"start","timestamp":1}}"#, .liveActivity, says: "'attributes'"),
        .init(#"{"aps":{"event":"begin","timestamp":1}}"#, .liveActivity, says: "start, update"),
        .init(#"{"aps":{}}"#, .widgets, says: "content-changed"),
        .init(#"{"aps":{}}"#, .mdm, says: "PushMagic"),
        .init(#"{"mdm":"x","a":1}"#, .mdm, says: "take 'a' out"),
        .init(#"{"aps":{"alert":"x","colour":1}}"#, isError: false, says: "beside aps"),
        .init(#"{"aps":{"alert":"x"},"badge":1}"#, isError: false, says: "put it inside"),
        .init(#"{"aps":{"alert":"x"},"id":null}"#, isError: false, says: "is null"),
        .init(#"{"aps":{"alert":"x","event":"end"}}"#, isError: false, says: "liveactivity"),
        .init(#"{"aps":{"sound":"x","mutable-content":1}}"#, isError: false, says: "extensions"),
        .init(#"{"aps":{"alert":{"launch-image":"i"}}}"#, isError: false, says: "no title or body"),
        .init(#"{"aps":{"alert":{"body":"b","loc-args":[]}}}"#, isError: false, says: "'loc-key'"),
        .init("{}", isError: false, says: "Wallet"),
        .init(
            #"{"aps":{"event":"end","timestamp":1700000000000,"content-state":{}}}"#,
            .liveActivity, isError: false, says: "milliseconds"),
    ]

    @Test("What Apple's rules forbid is found where it stands", arguments: bad)
    func findsBad(test: Case) {
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
}
