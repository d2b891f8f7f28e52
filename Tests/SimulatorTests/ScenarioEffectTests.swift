import BroadsideSupport
import Foundation
import Testing

@testable import BroadsideSimulator

/// That scenarios do what they say where a whole campaign would not show it: by nghttp.
@Suite(.enabled(if: isInstalled("nghttp"), "nghttp is not installed"))
struct ScenarioEffectTests {
    /// One notification with a payload of so many bytes; how long it took, and what nghttp saw.
    private func notify(
        _ scenario: String, payload count: Int = 100, token: String = EndpointHarness.token
    ) throws -> (nanoseconds: UInt64, output: String) {
        let folder = Folder()
        let file = try folder.write("scenario.json5", scenario)
        let harness = try EndpointHarness { $0.scenario = file }
        let payload = try folder.write("payload", String(repeating: "a", count: count))
        let bearer = try harness.providerToken()
        let start = ClockStart.monotonicNanoseconds()
        let result = try run([
            "nghttp", "-v", "-n", "-d", payload, "-H", ":method: POST", "-H",
            "authorization: bearer \(bearer)", "-H", "apns-topic: \(harness.state.topic)",
            harness.url("/3/device/\(token)"),
        ])
        return (ClockStart.monotonicNanoseconds() - start, result.output)
    }

    private func count(_ text: String, in output: String) -> Int {
        output.components(separatedBy: text).count - 1
    }

    /// What the client sees that waits for SETTINGS before it sends.
    private func converse(
        _ scenario: String, _ step: ([(String, String)]) -> IndependentClient.Step
    ) throws -> [IndependentClient.Event] {
        let folder = Folder()
        let file = try folder.write("scenario.json5", scenario)
        let harness = try EndpointHarness { $0.scenario = file }
        let fields = IndependentClient.fields(harness, bearer: try harness.providerToken())
        return try IndependentClient.converse(harness, [step(fields)])
    }

    @Test(.enabled(if: IndependentClient.isThere, "python3-h2 is not installed"))
    func `A window of 100 bytes opens by as much as the scenario says`() throws {
        // 4,096 bytes through a window of 100: 40 times for the stream, as often for the connection.
        let events = try converse(
            "{ settings: { initial_window: 100 }, window: { octets: 100, every: '1ms' } }"
        ) { .upload($0, body: String(repeating: "a", count: 4096)) }
        #expect(events.contains { $0.status == 200 }, "\(events)")
        #expect(events.contains { $0.settings?["4"] == 100 }, "\(events)")
        #expect(events.count { $0.increment == 100 } >= 78, "\(events)")
    }

    @Test(.enabled(if: IndependentClient.isThere, "python3-h2 is not installed"))
    func `A connection that is read slowly takes as long as the scenario says`() throws {
        // The request alone has some 500 bytes, and its body 1,500: eight waits. The client's clock
        // may start after the first of them.
        let events = try converse("{ reading: { octets: 250, every: '200ms' } }") {
            .request($0, body: #"{"aps":{"alert":"\#(String(repeating: "a", count: 1_480))"}}"#)
        }
        let answer = try #require(events.first { $0.status == 200 }, "\(events)")
        #expect(answer.seconds ?? 0 >= 1.2)
    }

    @Test func `A stalled connection responds after stall_for`() throws {
        let (time, output) = try notify(
            "{ faults: [{ do: 'stall', at: 1, stall_for: '600ms' }] }")
        #expect(output.contains(":status: 200"))
        #expect(time >= 600_000_000)
    }

    @Test func `Responses are split and padded as the scenario says`() throws {
        let (_, output) = try notify(
            "{ answers: { header_frames: 3, data_octets: 5, padding: 17 } }", token: "abc")
        #expect(output.contains(":status: 400"))
        // {"reason":"BadDeviceToken"} has 27 bytes; the padding's length byte is one of the 17.
        #expect(count("recv DATA frame <length=22", in: output) == 5, "\(output)")
        #expect(count("recv DATA frame <length=19", in: output) == 1)
    }

    @Test func `A scenario's settings are announced at first and changed at a request`() throws {
        let (_, output) = try notify(
            """
            { settings: { header_table_size: 100, max_frame_size: 20000, max_header_list_size: 900 },
              faults: [{ do: 'settings', at: 1, max_streams: 7, initial_window: 1234 }] }
            """)
        for expected in [
            "HEADER_TABLE_SIZE(0x01):100", "MAX_FRAME_SIZE(0x05):20000",
            "MAX_HEADER_LIST_SIZE(0x06):900", "MAX_CONCURRENT_STREAMS(0x03):7",
            "INITIAL_WINDOW_SIZE(0x04):1234",
        ] {
            #expect(output.contains(expected), "\(expected)")
        }
    }

    @Test func `A header block is split into frames with padding in the first`() {
        let block = Array(UInt8(0)..<20)
        let frame: [UInt8] = [0, 0, 20, 1, 5, 0, 0, 0, 3] + block
        var output = ByteBuffer(capacity: 0)
        frame.withBytes {
            FrameShaper.append($0, ResponseShape(headerFrames: 3, padding: 2), to: &output)
        }
        let expected: [[UInt8]] = [
            [0, 0, 9, 1, 9, 0, 0, 0, 3, 2], Array(block[..<6]), [0, 0],
            [0, 0, 7, 9, 0, 0, 0, 0, 3], Array(block[6..<13]),
            [0, 0, 7, 9, 4, 0, 0, 0, 3], Array(block[13...]),
        ]
        #expect(Array(output.bytes) == expected.flatMap(\.self))
    }

    @Test func `Responses are due by capacity and load of the scenario`() throws {
        func dues(_ text: String, connections: Int = 1) throws -> [UInt64] {
            let scenario = try ScenarioReader.read(Array(text.utf8), name: "test")
            let context = WorkerContext(
                options: SimulatorOptions(state: ""),
                tokenTopics: TopicTable(app: "a.b", otherApp: "a.c"), keys: [], journal: nil,
                start: .now(), seed: 1)
            context.run = ScenarioRun(scenario, now: context.now)
            #expect(context.delaysResponses)
            var next = [UInt64](repeating: 0, count: connections)
            return (0..<10).map { number in
                let due = context.dueTime(connectionNext: &next[number % connections])
                context.queue.push(
                    PendingResponse(
                        slot: 0, generation: 0, streamID: 1, isAuthenticated: true,
                        response: .accepted, identifier: NotificationIDText(repeating: 0)),
                    due: due)
                return due - context.now
            }
        }
        #expect(
            try dues("{ latency: { capacity: 1000 } }")
                == (1...10).map { UInt64($0) * 1_000_000 })
        #expect(
            try dues("{ latency: { value: '5us', per_waiting: '2us' } }")
                == (0..<10).map { 5000 + UInt64($0) * 2000 })
        // Two connections: each has the thread's capacity between them, or one of its own.
        #expect(
            try dues("{ latency: { capacity: 1000 } }", connections: 2)
                == (1...10).map { UInt64($0) * 1_000_000 })
        #expect(
            try dues("{ latency: { capacity: 1000, capacity_by: 'connection' } }", connections: 2)
                == (0..<10).map { (UInt64($0) / 2 + 1) * 1_000_000 })
        #expect(try dues("{ latency: '3ms' }") == Array(repeating: 3_000_000, count: 10))
    }
}
