import BroadsideAPNs
import BroadsideCampaigns
import BroadsideEngine
import BroadsideSupport

/// Provider token of a client, which is renewed in time. Only the client's thread uses it.
struct ClientAuthorization: Sendable {
    /// Value of the header field `authorization`; nil with a certificate.
    private(set) var value: [UInt8]?
    private var credential: Credential
    private var issuedAt: UInt64 = 0
    /// File with the tokens of another program; nil if there is none.
    private var file: ClientTokenFile?
    private let logger: (any RunLogger)?

    /// - Parameters:
    ///   - credential: Source of the tokens.
    ///   - logger: Receives warnings about a token file; nil: they are dropped.
    ///   - nowSeconds: Seconds since 1970.
    init(
        _ credential: Credential, logger: (any RunLogger)?, nowSeconds: UInt64
    ) throws(BroadsideError) {
        self.credential = credential
        self.logger = logger
        let first = try credential.authorization(nowSeconds: nowSeconds)
        value = first.value
        issuedAt = first.issuedAtSeconds
        if case .suppliedToken(let token) = credential {
            file = ClientTokenFile(token, nowSeconds: nowSeconds)
        }
    }

    /// Makes or reads a new token if one is due.
    mutating func renew(_ nowSeconds: UInt64) {
        switch credential {
        case .certificate: return
        case .key:
            guard ProviderTokenAge.issueTime(at: nowSeconds) > issuedAt else { return }
        case .suppliedToken:
            guard let next = readFile(nowSeconds) else { return }
            credential = .suppliedToken(next)
        }
        take(nowSeconds)
    }

    /// Makes or reads another token because APNs reported the current token as expired; returns
    /// false if there is no other token.
    mutating func renewAfterExpiry(_ nowSeconds: UInt64) -> Bool {
        let before = value
        file?.readSoon()
        if case .key = credential, ProviderTokenAge.windowStart(nowSeconds) > issuedAt {
            // Normally, the token of the previous time window is used for some more minutes. Here,
            // the token of the current window is used at once.
            take(nowSeconds + ProviderTokenAge.changeSeconds)
        } else {
            renew(nowSeconds)
        }
        return value != before
    }

    /// Reads a new token from the file; nil if there is none.
    private mutating func readFile(_ nowSeconds: UInt64) -> ExternalProviderToken? {
        guard let reading = file?.read(nowSeconds) else { return nil }
        for warning in reading.warnings {
            logger?.log(RunLogEntry(line: "broadside: warning: \(warning)"))
        }
        return reading.token
    }

    private mutating func take(_ nowSeconds: UInt64) {
        guard let next = try? credential.authorization(nowSeconds: nowSeconds) else { return }
        value = next.value
        issuedAt = next.issuedAtSeconds
    }
}
