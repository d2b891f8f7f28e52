internal import BroadsidePrimitives

/// Part of a run's summary that a benchmark uses.
struct BenchSummary: Decodable {
    /// Latencies in milliseconds; nil if there were no responses.
    struct Latency: Codable {
        var p50: Double?
        var p90: Double?
        var p99: Double?
        var p999: Double?
        var max: Double?
    }

    var accepted: Int
    var rejected: Int
    /// Nil if the run ended before it could begin.
    var connections: Int?
    var elapsedSeconds: Double
    var notificationsPerSecond: Double
    var latency: Latency
    var peakResidentBytes: Int
    var limitedBy: [String: Double]?

    private enum CodingKeys: String, CodingKey {
        case accepted, rejected, connections
        case elapsedSeconds = "elapsed_seconds"
        case notificationsPerSecond = "notifications_per_second"
        case latency = "latency_ms"
        case peakResidentBytes = "peak_rss_bytes"
        case limitedBy = "limited_by"
    }

    /// Parses a summary; nil if the text is not a summary.
    init?(_ json: String) {
        guard let read = try? JSONCoding.decode(Self.self, from: Array(json.utf8)) else {
            return nil
        }
        self = read
    }
}

/// Statistics of a run's requests from `--trace-frames`.
struct BenchTrace {
    /// Bytes of HEADERS and DATA frames per request; nil if there were no requests.
    private(set) var bytesEach: Double?

    private struct Frame: Decodable {
        var direction: String
        var type: String
        var stream: Int
        var length: Int
    }

    /// Length of a frame header (RFC 9113, 4.1).
    private static let frameHeaderCount = 9

    init(_ lines: String) {
        var (requests, bytes) = (0, 0)
        for line in lines.split(separator: "\n") {
            guard let frame = try? JSONCoding.decode(Frame.self, from: Array(line.utf8)),
                frame.direction == "sent", frame.type == "HEADERS" || frame.type == "DATA"
            else { continue }
            bytes += frame.length + Self.frameHeaderCount
            if frame.type == "HEADERS" { requests += 1 }
        }
        if requests > 0 { bytesEach = Double(bytes) / Double(requests) }
    }
}
