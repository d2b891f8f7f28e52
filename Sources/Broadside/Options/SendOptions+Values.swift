import BroadsideAPNs
import BroadsideSupport

/// Permitted values of single options, for the command's parser and for programs that set them.
extension SendOptions {
    package static let connectionsRange = 1...10_000
    package static let maxStreamsRange = 1...100_000
    package static let reactorsRange = 1...256
    package static let maxAttemptsRange = 1...1_000
    package static let abortAfterRange = 1...1_000_000
    package static let canaryRange = 1...1_000_000
    package static let limitRange = 1...(1 << 40)
    package static let percentageRange = 0.0...100.0
    /// Rates are above 0, and not above what any machine can send.
    package static let rateRange = Double.leastNonzeroMagnitude...1e9

    /// Checks each value separately, as the command's parser does.
    func checkValues() throws(BroadsideError) {
        try Self.check("connections", connections, Self.connectionsRange)
        try Self.check("max-streams", maxStreams, Self.maxStreamsRange)
        try Self.check("reactors", reactors, Self.reactorsRange)
        try Self.check("max-attempts", maxAttempts, Self.maxAttemptsRange)
        try Self.check("abort-after", abortAfter, Self.abortAfterRange)
        try Self.check("canary", canary, Self.canaryRange)
        try Self.check("limit", limit.map { Int(clamping: $0) }, Self.limitRange)
        try Self.check("preview", preview, 1...Self.previewLimit)
        try Self.check("max-bad-tokens", maxBadTokens, Self.percentageRange)
        try Self.check("max-invalid", maxInvalid, Self.percentageRange)
        try Self.check("canary-max-rejected", canaryMaxRejected, Self.percentageRange)
        for perSecond in [rate?.first, rate?.last] { try Self.checkRate("rate", perSecond) }
        try Self.checkRate("rate-per-connection", ratePerConnection)
        for (option, duration) in [
            ("request-timeout", requestTimeout), ("give-up-after", giveUpAfter),
        ] where duration == 0 {
            throw .usage(option, "must be above 0")
        }
        if let name { try Self.checkName(name) }
        if let expiration { try Self.checkExpiration(expiration) }
    }

    /// Checks a value of apns-expiration that counts from the first start.
    package static func checkExpiration(_ expiration: Expiration) throws(BroadsideError) {
        guard case .after(let seconds) = expiration else { return }
        guard seconds > 0 else {
            throw .usage(
                "expiration",
                "+0s has passed when the notification is sent: to deliver at once or never, write 0"
            )
        }
        guard seconds <= UInt64(UInt32.max) else {
            throw .usage(
                "expiration",
                "is \(seconds) s after the first start: use at most \(grouped(UInt64(UInt32.max))) s"
            )
        }
    }

    /// Checks the name of a campaign.
    package static func checkName(_ name: String) throws(BroadsideError) {
        guard
            name.isEmpty || name.utf8.count > nameByteLimit
                || name.unicodeScalars.contains(where: ForeignText.isInvisible)
        else { return }
        throw .usage(
            "name",
            "takes 1 to \(nameByteLimit) bytes without control characters: write a short text")
    }

    private static func check(
        _ option: String, _ value: Int?, _ range: ClosedRange<Int>
    ) throws(BroadsideError) {
        guard let value, !range.contains(value) else { return }
        throw .usage(
            option, "is \(value): use \(grouped(range.lowerBound)) to \(grouped(range.upperBound))")
    }

    private static func check(
        _ option: String, _ value: Double, _ range: ClosedRange<Double>
    ) throws(BroadsideError) {
        guard !range.contains(value) else { return }
        throw .usage(option, "is \(value): use a percentage from 0 to 100")
    }

    private static func checkRate(
        _ option: String, _ perSecond: Double?
    ) throws(BroadsideError) {
        guard let perSecond, !rateRange.contains(perSecond) else { return }
        throw .usage(
            option, "is \(perSecond): use a number above 0 and up to 1,000,000,000 per second")
    }
}
