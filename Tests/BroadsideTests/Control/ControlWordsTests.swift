import BroadsideSupport
import Testing

@testable import BroadsideCampaigns

/// What an operator and a run say to each other over the control socket.
@Suite struct ControlWordsTests {
    @Test func `A control request is parsed, and a malformed one fails with a sentence`() throws {
        #expect(try ControlRequest("status") == .status)
        #expect(try ControlRequest("  rate   2500.5 ") == .rate(2500.5))
        #expect(try ControlRequest("rate unlimited") == .rate(nil))
        let rising = try #require(SendRate(from: 1, to: 5, withinNanoseconds: 2_000_000_000))
        #expect(try ControlRequest("rate 1..5/2s") == .rate(rising))
        #expect(try ControlRequest("pause") == .pause)
        for line in [
            "", "rate", "rate x", "rate 0", "rate -1", "rate nan", "rate inf", "rate 1e9",
            "rate 1 2", "rate 5..1/2s", "rate 1..5", "pause now", "STOP", "frob",
        ] {
            #expect(throws: BroadsideError.self, "\(line)") { try ControlRequest(line) }
        }
    }

    @Test func `A control response is shown as lines, errors too`() {
        let answer = #"{"ok":true,"rate_limit":null,"latency_ms":{"p50":1.5},"a":[{"b":"x\"y"}]}"#
        #expect(
            ControlClient.text(of: answer)
                == "rate limit      -\nlatency ms p50  1.5\na b             x\"y\n")
        #expect(ControlClient.text(of: "\u{1b}[2J\u{9b}x") == "\\u{1b}[2J\\u{9b}x\n")
        #expect(ControlClient.error(in: answer) == nil)
        #expect(ControlClient.error(in: #"{"ok":false,"error":"no"}"#) == "no")
        #expect(ControlClient.error(in: #"{"ok":false}"#) != nil)
    }

    @Test
    func `A stop says that a service manager starts the run again, and other requests do not`() {
        #expect(ControlClient.note(on: "stop").contains("exit code 3: systemd, Kubernetes"))
        #expect(ControlClient.note(on: "stop").hasSuffix("or use pause\n"))
        for request in ["status", "pause", "resume", "rate 5", "stop now", ""] {
            #expect(ControlClient.note(on: request).isEmpty, "\(request)")
        }
    }
}
