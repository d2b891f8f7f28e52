/// What one benchmark is asked to do.
struct BenchOptions: Sendable {
    /// About how long the measured run takes.
    var durationNanoseconds: UInt64 = 5_000_000_000
    /// Bytes of the payload.
    var payloadCount = 242
    /// nil: `defaultConnections`, or one for each reactor.
    var connections: Int?
    /// Streams a connection; nil: the server's limit.
    var streams: Int?
    /// nil: chosen by the engine.
    var reactors: Int?
    /// From a request to the simulator's answer.
    var latencyNanoseconds: UInt64 = 0
    /// Options of `send` for another server; empty: a simulator is started.
    var endpointArguments: [String] = []

    /// As many as `send` begins with.
    static let defaultConnections = 4
    /// What `--duration` may be: below it start and end outweigh the run.
    static let durations: ClosedRange<UInt64> = 100_000_000...600_000_000_000
    /// The shortest payload with an alert, and APNs' limit.
    static let payloadCounts = 20...4096

    /// Whether an endpoint is one of Apple's, by name or by address: 17.0.0.0/8, and of IPv6 the
    /// networks in which APNs is.
    static func isApples(_ endpoint: String) -> Bool {
        var host = endpoint.lowercased()
        if host.hasPrefix("[") {
            host = String(host.dropFirst().prefix { $0 != "]" })
        } else if let colon = host.lastIndex(of: ":") {
            host = String(host[..<colon])
        }
        while host.hasSuffix(".") { host.removeLast() }
        if host == "apple.com" || host.hasSuffix(".apple.com") { return true }
        if host.contains(":") {
            return ["2620:149:", "2403:300:", "2a01:b740:"].contains(where: host.hasPrefix)
        }
        let numbers = host.split(separator: ".", omittingEmptySubsequences: false)
        return numbers.count == 4 && numbers[0] == "17" && numbers.allSatisfy { UInt8($0) != nil }
    }
}
