import BroadsideAPNs
import BroadsideCampaigns
import BroadsideEngine
import BroadsideSupport

/// Provider token of a client, which is renewed in time. Only the client's thread uses it.
struct ClientAuthorization: Sendable {
    private var life: ProviderTokenLife
    /// Makes tokens; nil if another program makes them, or with a certificate.
    private var sign: RunCoordinator.Signer?
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
        let first = try credential.authorization(nowSeconds: nowSeconds)
        life = ProviderTokenLife(
            first.value.map { ProviderTokenLife.Token(value: $0, issuedAt: first.issuedAtSeconds) })
        sign = first.sign
        if case .suppliedToken(let token) = credential {
            file = ClientTokenFile(token, nowSeconds: nowSeconds)
        }
        self.logger = logger
    }

    /// Value of the header field `authorization`; nil with a certificate.
    var value: [UInt8]? { life.current?.value }

    /// Makes or reads a new token if one is due.
    mutating func renew(_ nowSeconds: UInt64) {
        guard sign != nil else { return readFile(nowSeconds) }
        life.requestIfDue(nowSeconds)
        makeToken(nowSeconds)
    }

    /// Makes or reads another token, unless there is one already, because APNs reported a token as
    /// expired.
    ///
    /// - Parameter used: The expired token, as `value`.
    /// - Returns: Whether the token in use is now another one.
    mutating func renewAfterExpiry(of used: [UInt8]?, _ nowSeconds: UInt64) -> Bool {
        guard used == value else { return true }
        if sign != nil {
            _ = life.requestAfterExpiry(nowSeconds, usedVersion: life.version)
            makeToken(nowSeconds)
        } else {
            file?.readSoon()
            readFile(nowSeconds)
        }
        return used != value
    }

    /// Uses the previous token again, and makes no other token for 20 minutes, because APNs responded
    /// TooManyProviderTokenUpdates.
    ///
    /// - Parameter used: The token that came too early, as `value`.
    /// - Returns: Whether the token in use is now another one.
    mutating func freeze(after used: [UInt8]?, _ nowSeconds: UInt64) -> Bool {
        guard used == value else { return true }
        life.freeze(nowSeconds, usedVersion: life.version)
        return used != value
    }

    /// Continues with another credential. If it is the same one, read again, its token in use and the
    /// limits on its renewal remain.
    mutating func replace(with other: ClientAuthorization) {
        let life = isSame(as: other) ? self.life : other.life
        self = other
        self.life = life
    }

    private func isSame(as other: ClientAuthorization) -> Bool {
        if let sign = other.sign, let current = life.current {
            return sign(current.issuedAt) == current.value
        }
        return file?.token.authorization == other.file?.token.authorization
    }

    private mutating func makeToken(_ nowSeconds: UInt64) {
        guard let issuedAt = life.renewal(nowSeconds), let value = sign?(issuedAt) else { return }
        life.take(ProviderTokenLife.Token(value: value, issuedAt: issuedAt), nowSeconds)
    }

    private mutating func readFile(_ nowSeconds: UInt64) {
        guard let reading = file?.read(nowSeconds) else { return }
        for warning in reading.warnings {
            logger?.log(RunLogEntry(line: "broadside: warning: \(warning)"))
        }
        guard let token = reading.token,
            let next = try? Credential.suppliedToken(token).authorization(nowSeconds: nowSeconds),
            let value = next.value
        else { return }
        life.take(ProviderTokenLife.Token(value: value, issuedAt: next.issuedAtSeconds), nowSeconds)
    }
}
