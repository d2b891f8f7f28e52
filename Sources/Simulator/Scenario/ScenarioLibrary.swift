/// The built-in scenarios, each as the text of a scenario file.
enum ScenarioLibrary {
    /// The output of `--scenario list`, one line per scenario.
    static var list: String {
        let width = entries.map(\.name.count).max() ?? 0
        return entries.map { entry in
            let summary =
                (try? ScenarioReader.read(Array(entry.text.utf8), name: entry.name))?.summary ?? ""
            let blanks = String(repeating: " ", count: width - entry.name.count + 2)
            return entry.name + blanks + summary
        }.joined(separator: "\n")
    }

    static let entries: [(name: String, text: String)] = [
        (
            "calm",
            """
            { description: "nothing out of the ordinary" }
            """
        ),
        (
            "goaway",
            """
            {
              description: "each connection ends after 500 requests: GOAWAY, reason Shutdown",
              faults: [{ do: "goaway", at: 500, reason: "Shutdown" }],
            }
            """
        ),
        (
            "goaway-notice",
            """
            {
              description: "each connection ends after 500 requests, in two steps: a first GOAWAY is a notice, and a second one with the last stream follows 50 ms later",
              faults: [{ do: "goaway", at: 500, reason: "Shutdown", notice: "50ms" }],
            }
            """
        ),
        (
            "goaway-text",
            """
            {
              description: "each connection ends before its 500th request is accepted: GOAWAY with text instead of JSON",
              faults: [{ do: "goaway", at: 500, before_request: true, text: "going away" }],
            }
            """
        ),
        (
            "goaway-abrupt",
            """
            {
              description: "four connections end while streams are open: GOAWAY, and open streams get no response",
              latency: "5ms",
              faults: [
                { do: "goaway", at: 500, limit: 4, code: "INTERNAL_ERROR", abrupt: true },
              ],
            }
            """
        ),
        (
            "refused-streams",
            """
            {
              description: "each 7th request is refused without processing",
              faults: [{ do: "refuse", every: 7 }],
            }
            """
        ),
        (
            "reset-streams",
            """
            {
              description: "20 requests are processed, but their responses are lost: RST_STREAM",
              faults: [{ do: "reset_stream", every: 50, limit: 20, code: "INTERNAL_ERROR" }],
            }
            """
        ),
        (
            "resets",
            """
            {
              description: "three connections are reset after 500 requests each",
              faults: [{ do: "reset_connection", at: 500, limit: 3 }],
            }
            """
        ),
        (
            "closes",
            """
            {
              description: "three connections are closed after 500 requests each, without GOAWAY",
              faults: [{ do: "close", at: 500, limit: 3 }],
            }
            """
        ),
        (
            "stalls",
            """
            {
              description: "a connection stops reading and writing for 300 ms, four times",
              faults: [{ do: "stall", every: 200, limit: 4, stall_for: "300ms" }],
            }
            """
        ),
        (
            "stall-for-good",
            """
            {
              description: "one connection falls silent after 500 requests",
              faults: [{ do: "stall", at: 500, limit: 1 }],
            }
            """
        ),
        (
            "slow-reads",
            """
            {
              description: "the server reads 8 KB of each connection every 2 ms",
              reading: { octets: 8192, every: "2ms" },
            }
            """
        ),
        (
            "small-windows",
            """
            {
              description: "streams have a window of 40 bytes, which grows when it is used up",
              settings: { initial_window: 40 },
            }
            """
        ),
        (
            "dribbled-windows",
            """
            {
              description: "window credit is returned at 2,000 bytes per 2 ms",
              settings: { initial_window: 200 },
              window: { octets: 2000, every: "2ms" },
            }
            """
        ),
        (
            "changing-settings",
            """
            {
              description: "stream limit, windows, frame size and table size change during a connection",
              settings: { max_streams: 100 },
              faults: [
                { do: "settings", at: 100, max_streams: 1 },
                { do: "settings", at: 120, max_streams: 500, initial_window: 1000 },
                { do: "settings", at: 300, initial_window: 16 },
                { do: "settings", at: 310, initial_window: 100000, max_frame_size: 32768 },
                { do: "settings", at: 400, header_table_size: 0 },
                { do: "settings", at: 500, header_table_size: 8192, max_streams: 20 },
              ],
            }
            """
        ),
        (
            "split-answers",
            """
            {
              description: "responses in four header frames and DATA of 5 bytes, all padded",
              answers: { header_frames: 4, data_octets: 5, padding: 30 },
            }
            """
        ),
        (
            "too-many-requests",
            """
            {
              description: "30 requests get TooManyRequests, with a Retry-After of one second",
              faults: [
                { do: "answer", scope: "global", at: 200, count: 30, reason: "TooManyRequests",
                  retry_after: 1 },
              ],
            }
            """
        ),
        (
            "server-errors",
            """
            {
              description: "10 requests get InternalServerError, and some later requests get Shutdown",
              faults: [
                { do: "answer", scope: "global", at: 300, count: 10,
                  reason: "InternalServerError" },
                { do: "answer", scope: "global", at: 900, count: 5, reason: "Shutdown" },
              ],
            }
            """
        ),
        (
            "unavailable",
            """
            {
              description: "a burst of ServiceUnavailable with Retry-After",
              faults: [
                { do: "answer", scope: "global", at: 500, count: 20, retry_after: 1,
                  reason: "ServiceUnavailable" },
              ],
            }
            """
        ),
        (
            "expired-token",
            """
            {
              description: "the provider token expires once during the run: the sender renews a token of the previous half-hour, but ends with exit code 4 if the token is of the current half-hour",
              refusals: { collapse_after: 1 },
              faults: [{ do: "expire_token", scope: "global", at: 700, limit: 1 }],
            }
            """
        ),
        (
            "collapsing-limit",
            """
            {
              description: "each refusal lowers the stream limit to 1 until the next success",
              refusals: { collapse_after: 1 },
            }
            """
        ),
        (
            "refusal-budget",
            """
            {
              description: "a connection ends after 100 refusals",
              refusals: { goaway_after: 100 },
            }
            """
        ),
        (
            "slow-after-refusals",
            """
            {
              description: "each refusal delays the connection's responses by 1 ms more",
              refusals: { slow_by: "1ms" },
            }
            """
        ),
        (
            "token-updates",
            """
            {
              description: "an address may change its provider token once in 20 minutes; invalid tokens count as changes",
              token_updates: { per: "20m", invalid: true },
            }
            """
        ),
        (
            "late-unregistered",
            """
            {
              description: "dead tokens get 200 for up to a second, then 410 for seven of ten requests",
              unregistered: { within: "1s", share: 0.7 },
            }
            """
        ),
        (
            "busy-device",
            """
            {
              description: "each device token may get two requests per second",
              token_rate: { requests: 2, per: "1s" },
            }
            """
        ),
        (
            "varying-latency",
            """
            {
              description: "half of the responses take up to 10 ms, a few much longer",
              latency: {
                distribution: "lognormal", median: "10ms", sigma: 1, at_most: "500ms",
              },
            }
            """
        ),
        (
            "overload",
            """
            {
              description: "at most 4,000 responses per second: latency grows with load",
              latency: {
                distribution: "exponential", mean: "2ms", capacity: 4000, per_waiting: "10us",
              },
            }
            """
        ),
        (
            "knee",
            """
            {
              description: "a connection gets at most 800 responses per second, each after 40 ms",
              latency: { value: "40ms", capacity: 800, capacity_by: "connection" },
            }
            """
        ),
        (
            "outage",
            """
            {
              description: "no connections are possible from 200 ms to 900 ms",
              latency: "20ms",
              faults: [{ do: "outage", from: "200ms", for: "700ms" }],
            }
            """
        ),
        (
            "idle-timeout",
            """
            {
              description: "a connection without requests for 300 ms ends with GOAWAY, IdleTimeout",
              idle_timeout: "300ms",
            }
            """
        ),
        (
            "gateway-shutdowns",
            """
            {
              description: "the legacy gateway shuts down after each 500 notifications and sends errors late",
              gateway: { shutdown_every: 500, error_delay: "100ms" },
            }
            """
        ),
    ]
}
