/// Options of one benchmark.
struct BenchOptions: Sendable {
    /// Approximate duration of the measured run.
    var durationNanoseconds: UInt64 = 5_000_000_000
    /// Length of the payload, in bytes.
    var payloadCount = 242
    /// Number of connections; nil: `defaultConnections`, or one per reactor.
    var connections: Int?
    /// Streams per connection; nil: the server's limit.
    var streams: Int?
    /// Number of reactors; nil: chosen by the engine.
    var reactors: Int?
    /// The delay between a request and the simulator's response.
    var latencyNanoseconds: UInt64 = 0
    /// Options of `send` for another server; empty: start a simulator.
    var endpointArguments: [String] = []

    /// Number of connections with which `send` starts.
    static let defaultConnections = 4
    /// Valid values of `--duration`, in nanoseconds. In shorter runs, start and end would dominate
    /// the result.
    static let durations: ClosedRange<UInt64> = 100_000_000...600_000_000_000
    /// Valid payload sizes: from the shortest payload with an alert to APNs' limit.
    static let payloadCounts = 20...4096

    /// Whether an endpoint is one of Apple's, by name or by address: 17.0.0.0/8, and the IPv6
    /// networks that APNs uses.
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
