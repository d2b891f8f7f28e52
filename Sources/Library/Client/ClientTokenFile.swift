import BroadsideCampaigns
import BroadsideSupport

/// File with a client's provider token, which another program replaces.
struct ClientTokenFile: Sendable {
    /// Token that was read last and can be used.
    private(set) var token: ExternalProviderToken
    private var lastMark: ExternalProviderToken.Mark?
    /// Earliest time for the next read, seconds since 1970.
    private var nextReading: UInt64
    /// Number of consecutive reads that did not find the file.
    private var missingReads = 0

    /// Interval between two reads, seconds.
    static let interval: UInt64 = 60
    /// Number of reads after which a missing file is reported. A program that replaces the file may
    /// remove it for a moment.
    private static let missingLimit = 2

    /// - Parameter token: The content of the file.
    init(_ token: ExternalProviderToken, nowSeconds: UInt64) {
        self.token = token
        lastMark = token.mark
        nextReading = nowSeconds + Self.interval
    }

    /// Makes the next read due at once.
    mutating func readSoon() { nextReading = 0 }

    /// Reads the file if a read is due and the file has changed.
    ///
    /// - Returns: A new token, or nil if there is none; and warnings.
    mutating func read(_ nowSeconds: UInt64) -> (token: ExternalProviderToken?, warnings: [String])
    {
        guard nowSeconds >= nextReading else { return (nil, []) }
        nextReading = nowSeconds + Self.interval
        let change: ExternalProviderTokenWatch.Reading? = .read(
            token, since: lastMark, by: ShellCommand())
        guard change?.isMissing != true else {
            missingReads = min(missingReads + 1, Self.missingLimit + 1)
            return (nil, missingReads == Self.missingLimit ? [missingWarning] : [])
        }
        missingReads = 0
        guard let reading = change else { return (nil, []) }
        lastMark = reading.mark
        guard let found = reading.token else { return (nil, reading.warnings) }
        let isNew = found.authorization != token.authorization
        token = found
        return (isNew ? found : nil, reading.warnings)
    }

    private var missingWarning: String {
        var name = "--auth-token-file"
        if case .file(let path) = token.source { name += " \(path)" }
        return "\(name) has disappeared: put it back before its token expires; the previous token "
            + "stays in use"
    }
}
