import Broadside
import BroadsideSupport
internal import Glibc

/// What a notification costs h2load, the load generator of nghttp2: the same payload, to a simulator of the
/// same kind, on the same machine. It has no token file, no ledger and no rate.
struct BenchReference: Encodable {
    /// As the program says it.
    var version: String
    var notifications: Int
    var notifications_per_second: Double
    /// User and system time of the whole process, a notification.
    var cpu_microseconds_per_notification: Double

    /// Requests at most: enough to compare, and a few seconds.
    private static let requestsLimit = 1_000_000

    /// Where the program is; nil: not on this machine.
    static var program: String? {
        let folders = (SystemCall.environment("PATH") ?? "/usr/bin:/bin").split(separator: ":")
        return folders.map { "\($0)/h2load" }.first {
            SystemCall.status($0).map { $0.st_mode & 0o111 != 0 && $0.st_mode & S_IFMT == S_IFREG }
                ?? false
        }
    }

    /// The arguments of a run that is like the one measured.
    ///
    /// - Parameters:
    ///   - requests: As many as were measured.
    ///   - measured: What `send` was told.
    ///   - simulator: Where it goes.
    ///   - payload: A file.
    static func arguments(
        requests: Int, _ measured: BenchOptions, connections: Int,
        to simulator: BenchSimulator, payload: String
    ) throws(BroadsideError) -> [String] {
        let requests = max(connections, min(requests, requestsLimit))
        let token = String(repeating: "0123456789abcdef", count: 4)
        // The provider token shows in the list of processes: its key was made for this simulator, which ends
        // with the run.
        let authorization = try ProviderTokenText.authorization(
            key: simulator.key, keyID: simulator.keyID, teamID: simulator.teamID)
        return [
            "-n", "\(requests)", "-c", "\(connections)", "-t", "1",
            "-m", "\(measured.streams ?? 100)", "-d", payload,
            "-H", "authorization: \(authorization)", "-H", "apns-topic: \(simulator.topic)",
            "-H", "apns-push-type: alert", "-H", "apns-priority: 10",
            "-H", "apns-id: 01234567-89ab-8def-8123-456789abcdef",
            "https://\(simulator.address)/3/device/\(token)",
        ]
    }

    /// Reads what it printed; nil if not every request succeeded.
    ///
    /// - Parameters:
    ///   - text: Its output.
    ///   - version: As it says it.
    ///   - cpuMicroseconds: What the process took.
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
