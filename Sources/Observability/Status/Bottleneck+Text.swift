package import BroadsideEngine
import BroadsideSupport

extension Bottleneck {
    /// Description of the bottleneck, for use after the word "bottleneck".
    ///
    /// - Parameter acceptsBySilence: Whether the server is a legacy gateway, which has no streams.
    package func description(acceptsBySilence: Bool = false) -> String {
        switch self {
        case .input: "reading the list"
        case .rate: "the rate limit"
        case .connecting: "connecting"
        case .retry: "backoff"
        case .streams:
            acceptsBySilence ? "waiting for possible refusals" : "APNs stream limit"
        case .window: "flow-control windows"
        case .socket: "network"
        case .cpu: "CPU of this machine"
        }
    }

    /// Brief advice on how to make a run with this bottleneck faster.
    var remedy: String {
        switch self {
        case .input: "an uncompressed list on a faster disk helps"
        case .rate: "a higher rate helps"
        case .connecting: "broadside doctor shows why connections take long"
        case .retry: "APNs is throttling: a lower rate helps"
        case .streams, .window: "more --connections help"
        case .socket: "--hpack compact sends fewer bytes"
        case .cpu: "more --reactors help if cores are idle"
        }
    }

    /// Advice in a report, in sentences.
    ///
    /// - Parameter acceptsBySilence: Whether the server is a legacy gateway.
    func advice(acceptsBySilence: Bool) -> String {
        switch self {
        case .input:
            "The connections waited for rows: the list was read too slowly, or it has few rows."
        case .rate: "Raise --rate to finish sooner."
        case .connecting:
            "Look at the connections below, and at name resolution and the network."
        case .retry where acceptsBySilence:
            "A gateway ends a connection with each notification that it refuses."
        case .retry: "Look at the connections below: they failed, or APNs throttled."
        case .streams where acceptsBySilence:
            "A notification is in flight until the gateway has been silent about it for long enough. "
                + "More --connections, or a higher --max-streams, allow more notifications in flight."
        case .streams: "Raise --connections to finish sooner."
        case .window:
            "The payloads fill the server's windows: raise --connections to finish sooner."
        case .socket: "The network could not take more data."
        case .cpu: "Raise --reactors, or use a machine with more cores, to finish sooner."
        }
    }

    /// A share as whole percent, rounded. Only a complete share is `100%`.
    static func shareText(_ share: Double) -> String {
        share >= 1 ? "100%" : "\(min(99, wholeNumber(share * 100)))%"
    }

    /// Text with the three largest shares; nil if the run was too short to determine them.
    ///
    /// - Parameter shares: Shares by `name`, with a sum of 1.
    package static func text(
        _ shares: [String: Double]?, seconds: Double, acceptsBySilence: Bool = false
    ) -> String? {
        guard let shares, seconds >= RunStatistics.shortestToJudgeSeconds else { return nil }
        let largest = allCases.map { ($0, shares[$0.name] ?? 0) }.filter { $0.1 >= 0.01 }
            .sorted { $0.1 > $1.1 }.prefix(3)
        guard !largest.isEmpty else { return nil }
        return largest.map { cause, share in
            "\(cause.description(acceptsBySilence: acceptsBySilence)) \(shareText(share))"
        }.joined(separator: ", ")
    }
}
