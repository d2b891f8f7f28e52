import BroadsideCampaigns
internal import BroadsidePrimitives
import BroadsideSupport

/// Result of a benchmark, as written to JSON. Keys are part of the contract.
struct BenchResult: Encodable {
    /// The machine that was measured.
    struct Machine: Encodable {
        var processor: String?
        var processors: Int
        var vaes: Bool
        var avx512: Bool
        var library: String
        var congestion_control: String?

        init(_ machine: MachineDescription) {
            processor = machine.processor
            processors = machine.processorCount
            vaes = machine.hasVAES
            avx512 = machine.hasAVX512
            library = machine.library
            congestion_control = machine.congestionControl
        }

        private enum CodingKeys: CodingKey {
            case processor, processors, vaes, avx512, library, congestion_control
        }

        func encode(to encoder: any Encoder) throws {
            var container = encoder.container(keyedBy: CodingKeys.self)
            try container.encode(processor, forKey: .processor)
            try container.encode(processors, forKey: .processors)
            try container.encode(vaes, forKey: .vaes)
            try container.encode(avx512, forKey: .avx512)
            try container.encode(library, forKey: .library)
            try container.encode(congestion_control, forKey: .congestion_control)
        }
    }

    /// CPU use of the simulator, on the same cores.
    struct Simulator: Encodable {
        var cpu_microseconds_per_notification: Double
    }

    /// Column of the latency histogram: the responses with a latency up to `up_to_ms` and above
    /// `up_to_ms` of the previous column.
    struct Column: Encodable {
        var up_to_ms: Double
        var answers: Int
    }

    var version = broadsideVersion
    var notifications: Int
    var seconds: Double
    var notifications_per_second: Double
    /// User and system time of the whole process, including its start, per notification.
    var cpu_microseconds_per_notification: Double
    /// Bytes of HEADERS and DATA frames per request, without TLS; null if unknown.
    var bytes_per_notification: Double?
    var payload_bytes: Int
    var connections: Int
    var latency_ms: BenchSummary.Latency
    var latency_histogram: [Column]
    /// Bottlenecks of the run, by name; null if no time was measured.
    var limited_by: [String: Double]?
    var peak_rss_bytes: Int
    /// CPU use of the simulator; null if another server was measured.
    var simulator: Simulator?
    /// The cost with h2load; null if h2load is not installed, or if another server was measured.
    var h2load: BenchReference?
    var machine: Machine { Machine(description) }
    private let description = MachineDescription.current()

    init(
        _ measured: BenchRun.Measured, _ options: BenchOptions, bytesEach: Double?,
        reference: BenchReference?
    ) {
        h2load = reference
        let summary = measured.summary
        notifications = summary.accepted + summary.rejected
        seconds = summary.elapsedSeconds
        notifications_per_second = summary.notificationsPerSecond
        cpu_microseconds_per_notification = measured.cpuMicroseconds / measured.answered
        bytes_per_notification = bytesEach
        payload_bytes = options.payloadCount
        connections = summary.connections ?? 0
        latency_ms = summary.latency
        latency_histogram = measured.latencies.map {
            Column(up_to_ms: $0.upTo, answers: $0.answers)
        }
        limited_by = summary.limitedBy
        peak_rss_bytes = summary.peakResidentBytes
        simulator = measured.simulatorMicroseconds.map {
            Simulator(cpu_microseconds_per_notification: $0 / measured.answered)
        }
    }

    private enum CodingKeys: CodingKey {
        case version, notifications, seconds, notifications_per_second
        case cpu_microseconds_per_notification, bytes_per_notification, payload_bytes, connections
        case latency_ms, latency_histogram, limited_by, peak_rss_bytes, simulator, h2load, machine
    }

    /// Encodes all keys; unknown values are null.
    func encode(to encoder: any Encoder) throws {
        var container = encoder.container(keyedBy: CodingKeys.self)
        try container.encode(version, forKey: .version)
        try container.encode(notifications, forKey: .notifications)
        try container.encode(seconds, forKey: .seconds)
        try container.encode(notifications_per_second, forKey: .notifications_per_second)
        try container.encode(
            cpu_microseconds_per_notification, forKey: .cpu_microseconds_per_notification)
        try container.encode(bytes_per_notification, forKey: .bytes_per_notification)
        try container.encode(payload_bytes, forKey: .payload_bytes)
        try container.encode(connections, forKey: .connections)
        try container.encode(latency_ms, forKey: .latency_ms)
        try container.encode(latency_histogram, forKey: .latency_histogram)
        try container.encode(limited_by, forKey: .limited_by)
        try container.encode(peak_rss_bytes, forKey: .peak_rss_bytes)
        try container.encode(simulator, forKey: .simulator)
        try container.encode(h2load, forKey: .h2load)
        try container.encode(machine, forKey: .machine)
    }

    /// JSON text that ends with a newline.
    var json: String {
        guard let data = try? JSONCoding.encode(self, .pretty) else {
            preconditionFailure("a result is plain numbers and texts")
        }
        return String(decoding: data, as: UTF8.self) + "\n"
    }

    /// Table for a terminal.
    var table: String {
        var lines = [
            (
                "notifications",
                "\(grouped(notifications)) in \(Self.tenths(seconds)) s"
            ),
            ("rate", "\(grouped(wholeNumber(notifications_per_second))) per second"),
            ("connections", "\(connections)"),
            ("CPU each", "\(Self.hundredths(cpu_microseconds_per_notification)) us"),
        ]
        if let h2load {
            let each = Self.hundredths(h2load.cpu_microseconds_per_notification)
            let share = Self.hundredths(
                cpu_microseconds_per_notification / h2load.cpu_microseconds_per_notification)
            lines.append(
                (
                    "h2load",
                    "\(each) us of CPU time each for \(grouped(h2load.notifications)) requests; "
                        + "Broadside needs \(share) times that"
                ))
        }
        if let simulator {
            let each = Self.hundredths(simulator.cpu_microseconds_per_notification)
            lines.append(("simulator", "\(each) us of CPU time each, in addition"))
        }
        if let bytes = bytes_per_notification {
            let text = "\(Self.tenths(bytes)) in HTTP/2 frames, \(payload_bytes) of them payload"
            lines.append(("bytes each", text))
        }
        let latencies = [
            ("p50", latency_ms.p50), ("p90", latency_ms.p90), ("p99", latency_ms.p99),
            ("p99.9", latency_ms.p999), ("max", latency_ms.max),
        ].compactMap { name, value in value.map { "\(name) \(Self.tenths($0))" } }
        lines.append(("latency, ms", latencies.joined(separator: ", ")))
        lines += histogram
        if let causes = Bottleneck.text(limited_by, seconds: seconds) {
            lines.append(("bottleneck", causes))
        }
        lines.append(("memory", "\(peak_rss_bytes >> 20) MiB at most"))
        lines.append(("machine", description.text))
        return lines.map { name, value in
            name + String(repeating: " ", count: 15 - name.count) + value + "\n"
        }.joined()
    }

    /// One line per column of the latency histogram: upper bound in milliseconds, and count.
    private var histogram: [(String, String)] {
        let most = latency_histogram.map(\.answers).max() ?? 0
        guard most > 0 else { return [] }
        return latency_histogram.map { column in
            let name = "  to \(Self.significant(column.up_to_ms))"
            let width = (column.answers * Self.barWidth + most - 1) / most
            let bar = String(repeating: "\u{2588}", count: width)
            return (name, bar + (width > 0 ? " " : "") + grouped(column.answers))
        }
    }

    /// Length of the longest bar.
    private static let barWidth = 40

    /// Rounds to about three significant digits.
    private static func significant(_ value: Double) -> String {
        let scale = value < 1 ? 1000.0 : value < 10 ? 100 : value < 100 ? 10 : 1
        let rounded = (value * scale).rounded() / scale
        return scale == 1 ? "\(Int(rounded))" : "\(rounded)"
    }

    static func tenths(_ value: Double) -> String { "\((value * 10).rounded() / 10)" }

    private static func hundredths(_ value: Double) -> String {
        "\((value * 100).rounded() / 100)"
    }
}
