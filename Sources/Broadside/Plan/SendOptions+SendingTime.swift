import BroadsideAPNs
internal import BroadsidePolicy
import BroadsideSupport

extension SendOptions {
    /// Text about the minimum time that the rate allows for the rows. Empty if the rate is constant
    /// and high enough for the deadline and the expiration, or if there is no limit.
    ///
    /// - Parameter ahead: Rows to send; nil if their number is unknown.
    func sendingTime(of ahead: RowsAhead?) -> String {
        guard let rate, let ahead, ahead.count > 0 else { return "" }
        func seconds(_ requests: UInt64) -> Double {
            rate.seconds(for: requests, after: ahead.sentSeconds)
        }
        // The first request does not wait for the rate.
        let exceeded = limitsExceeded(
            by: seconds(max(1, ahead.leastCount) - 1), after: ahead.elapsedSeconds)
        guard !exceeded.isEmpty else {
            let all = seconds(ahead.count).rounded(.down)
            guard rate.ramp != nil, all >= 1 else { return "" }
            return ": at least \(durationText(all)) \(ahead.words)"
        }
        let time = seconds(ahead.count - 1)
        return ": "
            + (ahead.isExact
                ? "at least \(durationText(time.rounded(.down)))"
                : "about \(durationText(time.rounded()))")
            + " \(ahead.words), which is longer than "
            + (ahead.elapsedSeconds > 0 ? "what is left of " : "")
            + exceeded.joined(separator: " and ")
    }

    /// Options whose time from the first start is over before rows that take so long are sent. A
    /// second is allowed for the rate's bursts. Other messages name a time that has passed.
    ///
    /// - Parameter elapsed: Seconds since the first start.
    private func limitsExceeded(by seconds: Double, after elapsed: Double) -> [String] {
        var limits: [(option: String, seconds: Double)] = []
        if let deadline { limits.append(("--deadline", Double(deadline) / 1e9)) }
        if case .after(let time)? = expiration { limits.append(("--expiration", Double(time))) }
        return limits.filter { elapsed < $0.seconds && elapsed + seconds >= $0.seconds + 1 }
            .map(\.option)
    }
}

extension SendRate {
    /// Seconds that a number of requests takes, after requests were already sent for `sent`
    /// seconds.
    fileprivate func seconds(for requests: UInt64, after sent: Double) -> Double {
        ramp?.seconds(for: Double(requests), after: sent) ?? Double(requests) / last
    }
}
