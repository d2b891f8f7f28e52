import BroadsideAPNs
import Testing

@testable import BroadsidePayloads

/// Payloads for broadcast channels, by the table of the documents.
@Suite struct BroadcastPayloadTests {
    private func findings(_ payload: String) -> [PayloadLint.Finding] {
        let bytes = Array(payload.utf8)
        return PayloadLint.findings(bytes.span.bytes, pushType: .liveActivity, isBroadcast: true)
    }

    @Test(arguments: [
        #"{"aps":{"timestamp":1790000000,"event":"update","content-state":{"home":2,"away":1}}}"#,
        #"{"aps":{"timestamp":1790001800,"event":"end","dismissal-date":1790005400,"content-state":{"home":2}}}"#,
        #"{"aps":{"timestamp":1790000060,"event":"update","stale-date":1790000960,"content-state":{"home":3},"alert":{"title":{"loc-key":"GOAL_%@","loc-args":["Home"]},"body":{"loc-key":"SCORE_%@_%@","loc-args":["3","1"]},"sound":"goal.caf"}}}"#,
        #"{"aps":{"timestamp":1790000000,"event":"update","content-state":{},"relevance-score":75}}"#,
    ])
    func `A broadcast of the documents has no findings`(_ payload: String) {
        #expect(findings(payload) == [])
    }

    /// A payload, a text of the finding, and whether it is an error.
    @Test(
        arguments: [
            (#"{"aps":{"event":"update","content-state":{}}}"#, "'timestamp'", true),
            (#"{"aps":{"timestamp":1790000000,"content-state":{}}}"#, "'event'", true),
            (#"{"aps":{"timestamp":1790000000,"event":"update"}}"#, "'content-state'", true),
            (#"{"aps":{"timestamp":1790000000,"event":"end"}}"#, "'content-state'", false),
            (
                #"{"aps":{"timestamp":1790000000,"event":"update","content-state":{},"alert":"Goal"}}"#,
                "an object with 'title' and 'body'", false
            ),
            (
                #"{"aps":{"timestamp":1790000000,"event":"update","content-state":{},"sound":"a.caf"}}"#,
                "'sound' of a Live Activity belongs in 'alert'", false
            ),
            (
                #"{"aps":{"timestamp":1790000000,"event":"start","content-state":{}}}"#,
                "can't start an activity", true
            ),
            (
                #"{"aps":{"timestamp":1790000000,"event":"stop","content-state":{}}}"#,
                "must be one of update, end", true
            ),
            (
                #"{"aps":{"timestamp":"1","event":"update","content-state":{}}}"#,
                "must be a number", true
            ),
            (
                #"{"aps":{"timestamp":1790000000,"event":"update","content-state":{"a":"{{name}}"}}}"#,
                "a broadcast has no rows", true
            ),
            (#"{"x":1}"#, "has no 'aps'", true),
        ] as [(String, String, Bool)])
    func `A broadcast that can't work has one finding that says why`(
        _ payload: String, _ text: String, _ isError: Bool
    ) {
        let found = findings(payload)
        #expect(found.count == 1, "\(found)")
        #expect(found.first?.problem.message.contains(text) == true, "\(found)")
        #expect(found.first?.isError == isError)
    }

    @Test func `Each placeholder is an error at its place, also with a default and in an array`() {
        let found = findings(
            """
            {"aps":{"timestamp":"{{t:int}}","event":"update","content-state":{"a":"{{b|c}}"},
            "alert":{"title":{"loc-key":"G","loc-args":["{{d}}","{{{{"]},"body":"e"}}}
            """)
        #expect(found.allSatisfy { $0.isError && $0.problem.message.contains("has no rows") })
        let places = found.map { [$0.problem.line, $0.problem.column] }
        #expect(places == [[1, 22], [1, 72], [2, 46]], "\(found)")
    }

    @Test(arguments: ["attributes", "attributes-type", "input-push-token", "input-push-channel"])
    func `A key that belongs to a start is an error in a broadcast`(_ key: String) {
        let value = ["attributes": "{}", "input-push-token": "1"][key] ?? "\"x\""
        let found = findings(
            "{\"aps\":{\"timestamp\":1790000000,\"event\":\"update\",\"content-state\":{},\"\(key)\":\(value)}}"
        )
        #expect(found.count == 1 && found[0].isError, "\(found)")
        #expect(found.first?.problem.message.contains("'\(key)' belongs to the start") == true)
    }

    @Test(arguments: [(5120, true), (5121, false)])
    func `A broadcast has at most 5,120 bytes`(_ count: Int, _ isAllowed: Bool) throws {
        let frame = "{\"aps\":{},\"x\":\"\"}"
        let text = frame.replacing(
            "\"\"", with: "\"\(String(repeating: "a", count: count - frame.utf8.count))\"")
        let bytes = Array(text.utf8)
        let template = try PayloadTemplate(bytes.span.bytes)
        #expect((PayloadCheck.broadcastSizeProblem(template) == nil) == isAllowed)
    }
}
