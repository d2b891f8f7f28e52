import BroadsideAPNs
import BroadsidePrimitives
import BroadsideSupport
import Testing

@testable import BroadsideSimulator

/// What a scenario's text comes to, and when its faults strike.
@Suite struct ScenarioReaderTests {
    private func read(_ text: String) throws -> Scenario {
        try ScenarioReader.read(Array(text.utf8), name: "test")
    }

    @Test func `A scenario with each member is read into its values`() throws {
        let scenario = try read(
            """
            // A comment.
            {
              description: 'all of it', seed: 0x10,
              settings: { max_streams: 5, header_table_size: 1, initial_window: 2,
                          max_frame_size: 16384, max_header_list_size: 3 },
              window: { octets: 7, every: "2ms" }, reading: { octets: 8, every: "3us" },
              answers: { header_frames: 2, data_octets: 9, padding: 255 },
              latency: { distribution: "uniform", from: "1ms", to: "2ms", at_most: "1s",
                         per_waiting: "4us", capacity: 100 },
              idle_timeout: "1m", handshake_timeout: "1h", goaway: "text",
              token_rate: { requests: 3, per: "1d" },
              refusals: { collapse_after: 1, goaway_after: 2, slow_by: "7us" },
              token_updates: { per: "3s", invalid: true },
              unregistered: { within: "5s", share: 0.25 },
              faults: [
                { do: "goaway", at: 5, every: 10, count: 2, limit: 3, scope: "global",
                  code: "ENHANCE_YOUR_CALM", text: "enough", notice: "5ms",
                  before_request: true, abrupt: true },
                { do: "answer", reason: "Unregistered", share: .5, from: "1s", for: "2s",
                  again: "4s", retry_after: 9 },
                { do: "stall", stall_for: "6ms" }, { do: "reset_stream", code: 8 },
                { do: "outage", from: "1s" },
              ],
            }
            """)
        #expect(scenario.summary == "all of it" && scenario.seed == 16)
        #expect(
            scenario.settings
                == SettingsChange(
                    maxStreams: 5, headerTableSize: 1, initialWindow: 2, maxFrameSize: 16384,
                    maxHeaderListSize: 3))
        #expect(scenario.window == Portion(count: 7, intervalNanoseconds: 2_000_000))
        #expect(scenario.reading == Portion(count: 8, intervalNanoseconds: 3000))
        #expect(
            scenario.responses == ResponseShape(headerFrames: 2, dataBytes: 9, padding: 255))
        #expect(
            scenario.latency
                == Latency(
                    distribution: .uniform(1_000_000, 2_000_000), limitNanoseconds: 1_000_000_000,
                    perWaitingNanoseconds: 4000, capacityPerSecond: 100))
        #expect(scenario.idleNanoseconds == 60_000_000_000)
        #expect(scenario.handshakeNanoseconds == 3_600_000_000_000)
        #expect(scenario.debug == .text)
        #expect(
            scenario.tokenRate
                == TokenRate(requests: 3, intervalNanoseconds: 86_400_000_000_000))
        #expect(
            scenario.refusals
                == RefusalLimits(collapseAfter: 1, goAwayAfter: 2, slowNanoseconds: 7000))
        #expect(
            scenario.tokenUpdates
                == TokenUpdateRule(intervalNanoseconds: 3_000_000_000, countsInvalid: true))
        #expect(
            scenario.lateUnregistered
                == LateUnregistered(withinNanoseconds: 5_000_000_000, share: 0.25))
        try #require(scenario.faults.count == 5)
        #expect(
            scenario.faults[0]
                == Fault(
                    action: .goAway(
                        GoAway(
                            code: 11, debug: Array("enough".utf8), noticeNanoseconds: 5_000_000,
                            isBeforeRequest: true, isAbrupt: true)),
                    trigger: Trigger(scope: .global, at: 5, every: 10, count: 2, limit: 3)))
        var answer = Response.refused(.unregistered)
        answer.retryAfterSeconds = 9
        #expect(
            scenario.faults[1]
                == Fault(
                    action: .response(answer),
                    trigger: Trigger(
                        share: 0.5, fromNanoseconds: 1_000_000_000,
                        forNanoseconds: 2_000_000_000, againNanoseconds: 4_000_000_000)))
        #expect(scenario.faults[2].action == .stall(nanoseconds: 6_000_000))
        #expect(scenario.faults[3].action == .resetStream(8))
        #expect(scenario.faults[4].action == .outage)
    }

    @Test func `The gateway's members are read, and each has a default`() throws {
        #expect(try read("{}").gateway == GatewayScript())
        let scenario = try read(
            """
            { gateway: { error_delay: "1s", end: "rst", shutdown_every: 9,
                         statuses: [{ token: "00Ff", status: 1 }, { token: "01", status: 255 }] } }
            """)
        var script = GatewayScript()
        script.errorDelayNanoseconds = 1_000_000_000
        script.end = .rst
        script.shutdownEvery = 9
        script.statuses = [[0, 255]: 1, [1]: 255]
        #expect(scenario.gateway == script)
    }

    @Test func `More than 10,000 statuses are refused with line and column`() throws {
        func text(_ count: Int) -> String {
            let entries = (0..<count).map {
                "{token:'\(String(0x10000 + $0, radix: 16))0',status:8}"
            }
            return "{gateway:{statuses:[\n\(entries.joined(separator: ",\n"))]}}"
        }
        let limit = GatewayScript.statusLimit
        #expect(limit == 10_000)
        #expect(try read(text(limit)).gateway.statuses.count == limit)
        let error = #expect(throws: ScenarioError.self) { try read(text(limit + 1)) }
        #expect(error?.message == "more than 10000 statuses")
        #expect(error?.position == JSON5Position(line: limit + 2, column: 1))
    }

    @Test(arguments: [
        "{ gateway: { statuses: [{ token: '00', status: 0 }] } }",
        "{ gateway: { statuses: [{ token: '0g', status: 1 }] } }",
        "{ gateway: { statuses: [{ status: 1 }] } }", "{ gateway: { end: 'close' } }",
        "{ gateway: { shutdown_every: 0 } }", "{ gateway: { delay: '1s' } }",
        "{ seed: -1 }", "{ seed: 1.5 }", "{ latency: '5 ms' }", "{ latency: '999999999d' }",
        "{ latency: { distribution: 'uniform', from: '2ms', to: '1ms' } }",
        "{ latency: { distribution: 'uniform', from: '2ms' } }", "{ faults: {} }",
        "{ faults: [{ do: 'answer', reason: 'Timeout' }] }", "{ faults: [{ do: 'answer' }] }",
        "{ faults: [{ do: 'goaway', reason: 'a', text: 'b' }] }",
        "{ faults: [{ do: 'goaway', reason: 'a\\u0022' }] }",
        "{ faults: [{ do: 'goaway', code: 'NO' }] }", "{ faults: [{ do: 'refuse', share: 2 }] }",
        "{ faults: [{ do: 'outage', at: 1 }] }", "{ faults: [{ do: 'outage', again: '1s' }] }",
        "{ faults: [{ do: 'refuse', for: '2s', again: '1s' }] }", "{ settings: 5 }",
        "{ settings: { max_frame_size: 1 } }", "{ window: { octets: 5 } }", "{ nothing: 1 }",
        "{ answers: { padding: 256 } }", "",
    ])
    func `A mistake in a scenario fails`(_ text: String) {
        #expect(throws: ScenarioError.self) { try read(text) }
    }

    @Test func `Each shipped scenario is read and has a summary`() throws {
        for entry in ScenarioLibrary.entries {
            let scenario = try read(entry.text)
            #expect(!scenario.summary.isEmpty, "\(entry.name)")
        }
    }

    /// The numbers of the requests that are struck, of the first 30.
    private func struck(_ trigger: Trigger) -> [UInt64] {
        (1...30).filter { trigger.holds(number: $0, chance: 0) }
    }

    @Test func `A trigger by number strikes at its numbers`() {
        #expect(struck(Trigger()) == Array(1...30))
        #expect(struck(Trigger(at: 4)) == [4])
        #expect(struck(Trigger(at: 4, count: 3)) == [4, 5, 6])
        #expect(struck(Trigger(every: 7)) == [7, 14, 21, 28])
        #expect(struck(Trigger(every: 10, count: 2)) == [10, 11, 20, 21, 30])
        #expect(struck(Trigger(at: 3, every: 10, count: 2)) == [3, 4, 13, 14, 23, 24])
        #expect(!Trigger(share: 0.5).holds(number: 1, chance: 0.5))
        #expect(Trigger(share: 0.5).holds(number: 1, chance: 0.49))
    }

    @Test func `A trigger by time holds in its intervals and knows its next change`() {
        let once = Trigger(fromNanoseconds: 10, forNanoseconds: 5)
        #expect((0...20).filter { once.holds(at: $0) } == Array(10...14))
        #expect([0, 10, 15].map { once.nextChange(after: $0) } == [10, 15, nil])
        let again = Trigger(fromNanoseconds: 2, forNanoseconds: 1, againNanoseconds: 4)
        #expect((0...12).filter { again.holds(at: $0) } == [2, 6, 10])
        #expect((0...7).map { again.nextChange(after: $0) } == [2, 2, 3, 6, 6, 6, 7, 10])
    }

    @Test func `Strikes count for the connection, or for the run if the scope is global`() throws {
        let scenario = try read(
            """
            { faults: [
              { do: "refuse", every: 3, limit: 2 },
              { do: "close", at: 5, scope: "global" },
              { do: "reset_connection", from: "1s" },
            ] }
            """)
        let run = ScenarioRun(scenario, now: 1000)
        var first = ScenarioCounters(run: run, connection: 1)
        var second = ScenarioCounters(run: run, connection: 2)
        func next(
            _ counters: inout ScenarioCounters, _ count: Int, run: ScenarioRun, now: UInt64 = 2000
        ) -> [Fault.Action?] {
            (0..<count).map { _ in counters.next(run: run, connection: 1, now: now) }
        }
        let begin = next(&first, 4, run: run)
        #expect(begin == [nil, nil, .refuse, nil])
        // The fifth of all is the second connection's first.
        let other = next(&second, 4, run: run)
        #expect(other == [.close, nil, .refuse, nil])
        // Twice is enough.
        let more = next(&first, 3, run: run)
        #expect(more == [nil, nil, nil])
        let late = next(&first, 1, run: run, now: 1_000_001_000)
        #expect(late == [.resetConnection])
        #expect(run.strikes == [2, 1, 1])
        // Another run starts anew.
        let anew = next(&first, 3, run: ScenarioRun(scenario, now: 0), now: 1)
        #expect(anew == [nil, nil, .refuse])
    }

    @Test func `Each distribution of latency has its documented mean`() {
        func mean(_ distribution: Latency.Distribution) -> Double {
            let latency = Latency(distribution: distribution)
            var random: UInt64 = 1
            func share() -> Double {
                random &+= 0x9e37_79b9_7f4a_7c15
                return Double(splitmix64(random) >> 11) * 0x1p-53
            }
            return (0..<20_000).map { _ in Double(latency.sample(share(), share())) }
                .reduce(0, +) / 20_000
        }
        #expect(mean(.constant(5000)) == 5000)
        #expect(abs(mean(.uniform(1000, 3000)) - 2000) < 20)
        #expect(abs(mean(.exponential(mean: 5000)) - 5000) < 150)
        // The mean of a log-normal distribution is median x exp(sigma^2 / 2).
        #expect(abs(mean(.logNormal(median: 1000, sigma: 0.5)) - 1133) < 20)
        let limited = Latency(distribution: .exponential(mean: 1000), limitNanoseconds: 10)
        #expect(limited.sample(0.999999, 0) == 10)
    }
}
