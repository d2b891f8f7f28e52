import BroadsideTestSupport
import Foundation
import Testing

/// h2spec, a suite of conformance tests for servers of HTTP/2 (RFC 9113) and HPACK (RFC 7541).
///
/// No distribution packages it; docs/testing.md says how to build it.
@Suite(.timeLimit(.minutes(10)))
struct ConformanceTests {
    private static let isThere = (try? Tool.path(of: "h2spec")) != nil

    @Test(
        .enabled(if: RareProgram.areTested, "it needs h2spec: tools/test --full"),
        .enabled(if: isThere, "h2spec is not installed: docs/testing.md says how to build it"),
        arguments: [[], ["--strict"]])
    func `The simulator passes all tests of h2spec`(_ options: [String]) throws {
        let simulation = try Simulation()
        let directory = try TemporaryDirectory()
        let port = String(simulation.endpoint.split(separator: ":").last ?? "")
        let ended = try Subprocess(
            "h2spec", ["--tls", "--insecure", "--host", "127.0.0.1", "--port", port] + options,
            in: directory
        ).wait(limit: 300)
        let failures = ended.output.components(separatedBy: "Failures:").last ?? ""
        #expect(ended.exitCode == 0, "\(failures)")
        // 146 tests, 146 passed, 0 skipped, 0 failed
        let counts = failures.matches(of: /[0-9]+/).suffix(4).compactMap { Int($0.output) }
        try #require(counts.count == 4, "\(ended.output)")
        #expect(counts[0] >= 146 && counts[1] == counts[0], "\(failures)")
        try simulation.stop()
    }
}
