import BroadsideAPNs
internal import BroadsidePolicy
import BroadsideSupport

extension SendOptions {
    /// Text about the minimum time that the rate allows for the rows. Empty if the rate is constant
    /// and high enough for the deadline and the expiration, or if there is no limit.
    ///
    /// - Parameters:
    ///   - ahead: Rows to send; nil if their number is unknown.
    ///   - isExact: Whether the list's rows were counted. An estimate is compared with no time.
    func sendingTime(of ahead: RowsAhead?, isExact: Bool) -> String {
        guard let rate, let ahead, ahead.count > 0 else { return "" }
        let seconds = rate.seconds(for: ahead.count, after: ahead.sentSeconds).rounded(.down)
        // The first request does not wait for the rate.
        let least = rate.seconds(for: ahead.count - 1, after: ahead.sentSeconds)
        let exceeded = isExact ? limitsExceeded(by: least) : []
        guard rate.ramp != nil && seconds >= 1 || !exceeded.isEmpty else { return "" }
        let comparison =
            exceeded.isEmpty ? "" : ", which is longer than \(exceeded.joined(separator: " and "))"
        return ": at least \(durationText(exceeded.isEmpty ? seconds : least.rounded(.down))) "
            + ahead.words + comparison
    }

    /// Options whose time from the first start is over before rows that take so long are sent. A
    /// second is allowed for the rate's bursts.
    private func limitsExceeded(by seconds: Double) -> [String] {
        var limits: [(option: String, seconds: Double)] = []
        if let deadline { limits.append(("--deadline", Double(deadline) / 1e9)) }
        if case .after(let time)? = expiration { limits.append(("--expiration", Double(time))) }
        return limits.filter { seconds >= $0.seconds + 1 }.map(\.option)
    }
}

extension SendRate {
    /// Seconds that a number of requests takes, after requests were already sent for `sent`
    /// seconds.
    fileprivate func seconds(for requests: UInt64, after sent: Double) -> Double {
        ramp?.seconds(for: Double(requests), after: sent) ?? Double(requests) / last
    }
}
