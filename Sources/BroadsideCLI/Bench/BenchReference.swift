import BroadsideCampaigns
import BroadsideSimulator
import BroadsideSupport
internal import Glibc

/// The cost per notification of h2load, nghttp2's load generator. h2load sends the same payload to
/// the same kind of simulator on the same machine, but has no token file, no ledger and no rate
/// limit.
struct BenchReference: Encodable {
    /// Version line of the program.
    var version: String
    var notifications: Int
    var notifications_per_second: Double
    /// User and system time of the whole process, per notification.
    var cpu_microseconds_per_notification: Double

    /// Maximum number of requests. It is enough for a comparison, and takes a few seconds.
    private static let requestsLimit = 1_000_000

    /// Path of h2load; nil if it is not on this machine.
    static var program: String? {
        let folders = (SystemCall.environment("PATH") ?? "/usr/bin:/bin").split(separator: ":")
        return folders.map { "\($0)/h2load" }.first {
            SystemCall.status($0).map { $0.st_mode & 0o111 != 0 && $0.st_mode & S_IFMT == S_IFREG }
                ?? false
        }
    }

    /// Arguments for a run comparable to the measured one.
    ///
    /// - Parameters:
    ///   - requests: Number of measured requests.
    ///   - measured: Options of the measured run.
    ///   - simulator: Target of the requests.
    ///   - payload: Path of the payload file.
    static func arguments(
        requests: Int, _ measured: BenchOptions, connections: Int,
        to simulator: BenchSimulator, payload: String
    ) throws(BroadsideError) -> [String] {
        let requests = max(connections, min(requests, requestsLimit))
        // Without a limit on streams, Broadside uses as many as the simulator allows.
        let streams = measured.streams ?? Int(SimulatorOptions(state: "").maxStreams)
        let token = String(repeating: "0123456789abcdef", count: 4)
        // The provider token is visible in the list of processes. That is acceptable: its key was
        // made for this simulator, which ends with the run.
        let authorization = try ProviderTokenText.authorization(
            key: simulator.key, keyID: simulator.keyID, teamID: simulator.teamID)
        return [
            "-n", "\(requests)", "-c", "\(connections)", "-t", "1",
            "-m", "\(streams)", "-d", payload,
            "-H", "authorization: \(authorization)", "-H", "apns-topic: \(simulator.topic)",
            "-H", "apns-push-type: alert", "-H", "apns-priority: 10",
            "-H", "apns-id: 01234567-89ab-8def-8123-456789abcdef",
            "https://\(simulator.address)/3/device/\(token)",
        ]
    }

    /// Parses h2load's output; nil if any request failed.
    ///
    /// - Parameters:
    ///   - text: Output of h2load.
    ///   - version: Version line of h2load.
    ///   - cpuMicroseconds: CPU time of the process.
    init?(_ text: String, version: String, cpuMicroseconds: Double) {
        // "requests: 1000 total, 1000 started, 1000 done, 1000 succeeded, 0 failed, ..."
        guard let line = text.split(separator: "\n").first(where: { $0.hasPrefix("requests: ") }),
            let total = line.split(separator: " ").dropFirst().first.flatMap({ Int($0) }),
            total > 0, line.contains(" \(total) succeeded, 0 failed"),
            let rate = text.split(separator: "\n").first(where: { $0.hasPrefix("finished in ") })?
                .split(separator: " ").lazy.compactMap({ Double($0) }).first
        else { return nil }
        self.version = version
        notifications = total
        notifications_per_second = rate
        cpu_microseconds_per_notification = cpuMicroseconds / Double(total)
    }
}
