import Foundation
import Testing

@testable import BroadsideSimulator

/// Other clients that nobody here wrote.
@Suite struct ClientTests {
    @Test(.enabled(if: isInstalled("nghttp"), "nghttp is not installed"))
    func `nghttp sees the stream limit rise from 1 to --max-streams after its first request`()
        throws
    {
        let harness = try EndpointHarness { $0.maxStreams = 1234 }
        let payload = try harness.folder.write("payload.json", "{\"aps\":{}}")
        let token = try harness.providerToken()
        let result = try run([
            "nghttp", "-v", "-n", "-d", payload, "-H", ":method: POST", "-H",
            "authorization: bearer \(token)", "-H", "apns-topic: \(harness.state.topic)",
            harness.url("/3/device/\(EndpointHarness.token)"),
        ])
        #expect(result.output.contains(":status: 200"), "\(result.errors)")
        let first = result.output.range(of: "[SETTINGS_MAX_CONCURRENT_STREAMS(0x03):1]")
        let second = result.output.range(of: "[SETTINGS_MAX_CONCURRENT_STREAMS(0x03):1234]")
        #expect(first != nil && second != nil, "\(result.output)")
        if let first, let second { #expect(first.lowerBound < second.lowerBound) }
        for expected in [
            "HEADER_TABLE_SIZE(0x01):4096", "INITIAL_WINDOW_SIZE(0x04):65535",
            "MAX_FRAME_SIZE(0x05):16384", "MAX_HEADER_LIST_SIZE(0x06):8000",
        ] {
            #expect(result.output.contains(expected), "\(expected)")
        }
    }

    @Test(
        .enabled(if: isInstalled("nghttp"), "nghttp is not installed"),
        arguments: [false, true])
    func `nghttp with a certificate gets no stream limit of 1`(isFast: Bool) throws {
        let harness = try EndpointHarness { $0.isFast = isFast }
        let payload = try harness.folder.write("payload.json", "{\"aps\":{}}")
        let result = try run([
            "nghttp", "-v", "-n", "-d", payload, "-H", ":method: POST", "-H",
            "apns-topic: \(harness.state.topic)", "--cert", harness.state.file("client.pem"),
            "--key", harness.state.file("client.key"),
            harness.url("/3/device/\(EndpointHarness.token)"),
        ])
        #expect(result.output.contains(":status: 200"), "\(result.errors)")
        #expect(!result.output.contains("MAX_CONCURRENT_STREAMS(0x03):1]"))
    }

    @Test(
        .enabled(if: isInstalled("h2load"), "h2load is not installed"),
        arguments: [false, true], [0, 3_000_000] as [UInt64])
    func `h2load gets one response to each request`(isFast: Bool, latency: UInt64) throws {
        let folder = Folder()
        let harness = try EndpointHarness {
            $0.isFast = isFast
            $0.latencyNanoseconds = latency
            $0.latencyJitterNanoseconds = latency / 2
            $0.threads = 2
            $0.unregistered = 0.3
            $0.badToken = 0.1
            $0.seed = 7
            if !isFast { $0.journal = folder.file("journal.csv") }
        }
        let payload = try harness.folder.write(
            "payload.json", "{\"aps\":{\"alert\":\"\(String(repeating: "x", count: 200))\"}}")
        let token = try harness.providerToken()
        for (path, line) in [
            ("/3/device/ffffffffffffffff00", "status codes: 5000 2xx, 0 3xx, 0 4xx, 0 5xx"),
            ("/3/device/\(EndpointHarness.token)", "status codes: 0 2xx, 0 3xx, 5000 4xx, 0 5xx"),
        ] {
            let result = try run([
                "h2load", "-n", "5000", "-c", "8", "-m", "50", "-d", payload, "-H",
                "authorization: bearer \(token)", "-H", "apns-topic: \(harness.state.topic)",
                harness.url(path),
            ])
            #expect(result.output.contains(line), "\(result.output) \(result.errors)")
        }
        let totals = harness.stop()
        #expect(totals.requests == 10_000)
        #expect(totals.accepted == 5000)
        #expect(totals.refusals == [410: ["Unregistered": 5000]])
        #expect(totals.connections == 16)
        #expect(totals.violations == 0)
        guard !isFast else { return }
        let rows = try journalRows(folder.file("journal.csv"))
        #expect(rows.count == 10_000)
        #expect(Set(rows.map { $0[3] }).count == 10_000, "an identifier twice")
        #expect(Set(rows.map { $0[1] + "/" + $0[2] }).count == 10_000, "a stream twice")
        #expect(rows.allSatisfy { $0.count == 7 })
    }

    @Test(.enabled(if: isInstalled("h2load"), "h2load is not installed"))
    func `--lint refuse refuses a client that inserts :authority into the table`() throws {
        let harness = try EndpointHarness { $0.lint = .refuse }
        let payload = try harness.folder.write("payload.json", "{\"aps\":{}}")
        let result = try run([
            "h2load", "-n", "10", "-c", "1", "-m", "1", "-d", payload, "-H",
            "apns-topic: \(harness.state.topic)",
            harness.url("/3/device/\(EndpointHarness.token)"),
        ])
        #expect(result.output.contains("0 succeeded"), "\(result.output)")
        let totals = harness.stop()
        #expect(totals.requests == 0)
        #expect(totals.lintFindings[":authority inserted into the table"] == 1)
    }

    @Test(
        .enabled(if: isInstalled("openssl"), "openssl is not installed"),
        arguments: ["-tls1_2", "-tls1_3"])
    func `openssl s_client verifies the server and selects h2`(_ version: String) throws {
        let harness = try EndpointHarness()
        let result = try run([
            "openssl", "s_client", "-connect", "127.0.0.1:\(harness.endpoint.port)", version,
            "-alpn", "h2,http/1.1", "-CAfile", harness.state.file("ca.pem"),
            "-verify_return_error", "-verify_ip", "127.0.0.1",
        ])
        #expect(result.output.contains("ALPN protocol: h2"), "\(result.errors)")
        #expect(result.output.contains("Verify return code: 0 (ok)"))
        #expect(
            result.output.contains("Acceptable client certificate CA names")
                || result.output.contains("No client certificate CA names sent"))
    }

    @Test(.enabled(if: isInstalled("openssl"), "openssl is not installed"))
    func `openssl s_client that offers only HTTP/1.1 is refused`() throws {
        let harness = try EndpointHarness()
        let result = try run([
            "openssl", "s_client", "-connect", "127.0.0.1:\(harness.endpoint.port)", "-alpn",
            "http/1.1", "-CAfile", harness.state.file("ca.pem"),
        ])
        #expect((result.output + result.errors).contains("no application protocol"))
    }

    @Test(.enabled(if: isInstalled("openssl"), "openssl is not installed"))
    func `openssl s_client without ALPN is not refused`() throws {
        let harness = try EndpointHarness()
        let result = try run([
            "openssl", "s_client", "-connect", "127.0.0.1:\(harness.endpoint.port)", "-CAfile",
            harness.state.file("ca.pem"),
        ])
        #expect(result.output.contains("No ALPN negotiated"), "\(result.errors)")
        #expect(result.output.contains("Verify return code: 0 (ok)"))
    }
}
