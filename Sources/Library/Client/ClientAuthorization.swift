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
    /// Earliest time for the next read of a token that another program makes, seconds since 1970.
    private var nextReading: UInt64 = 0

    /// Interval between two reads of a token that another program makes, seconds.
    private static let readingInterval: UInt64 = 60

    init(_ credential: Credential, nowSeconds: UInt64) throws(BroadsideError) {
        self.credential = credential
        let first = try credential.authorization(nowSeconds: nowSeconds)
        value = first.value
        issuedAt = first.issuedAtSeconds
        nextReading = nowSeconds + Self.readingInterval
    }

    /// Makes or reads a new token if one is due.
    mutating func renew(_ nowSeconds: UInt64) {
        switch credential {
        case .certificate: return
        case .key:
            guard ProviderTokenAge.issueTime(at: nowSeconds) > issuedAt else { return }
        case .suppliedToken(let token):
            guard nowSeconds >= nextReading, case .file(let path) = token.source else { return }
            nextReading = nowSeconds + Self.readingInterval
            guard ExternalProviderToken.Mark(path: path) != token.mark else { return }
            var warnings: [String] = []
            guard
                let next = try? ExternalProviderToken.read(
                    path, nowSeconds: nowSeconds, warnings: &warnings)
            else { return }
            credential = .suppliedToken(next)
        }
        take(nowSeconds)
    }

    /// Makes or reads another token because APNs reported the current token as expired; returns
    /// false if there is no other token.
    mutating func renewAfterExpiry(_ nowSeconds: UInt64) -> Bool {
        let before = value
        nextReading = 0
        if case .key = credential, ProviderTokenAge.windowStart(nowSeconds) > issuedAt {
            // Normally, the token of the previous time window is used for some more minutes. Here,
            // the token of the current window is used at once.
            take(nowSeconds + ProviderTokenAge.changeSeconds)
        } else {
            renew(nowSeconds)
        }
        return value != before
    }

    private mutating func take(_ nowSeconds: UInt64) {
        guard let next = try? credential.authorization(nowSeconds: nowSeconds) else { return }
        value = next.value
        issuedAt = next.issuedAtSeconds
    }
}
