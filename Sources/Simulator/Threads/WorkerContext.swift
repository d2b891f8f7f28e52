internal import BroadsideAPNs
internal import BroadsideHPACK
internal import BroadsideSupport

/// The state shared by the sessions of one thread: the checks, the response queue, the journal and
/// the counts.
///
/// Used only by its own thread. It is a class because nghttp2's callbacks access it through a
/// pointer.
final class WorkerContext {
    let options: SimulatorOptions
    let checks: RequestChecks
    /// The topics of connections without a client certificate.
    let tokenTopics: TopicTable
    var verifier: ProviderTokenVerifier
    /// The current scenario; nil for none.
    var run: ScenarioRun?
    /// The device store; nil if it is not in use.
    let devices: DeviceStore?
    /// The broadcast channels.
    let channels: ChannelStore
    /// Tools with which tests read requests and choose responses.
    let instruments: Instruments
    /// The hash of the provider token that was last recorded as used; nil before the first one.
    private var notedToken: UInt64?
    var tokenRates = TokenRateTable()
    var queue = TimerQueue()
    var journal: JournalWriter?
    var totals = SimulatorTotals()
    let huffman = HuffmanReader()
    /// The head into which `FastSession` decodes a whole header block. No other type of session may
    /// use this head: other types receive blocks in parts, which would mix with blocks of other
    /// connections.
    var head: RequestHead
    /// Monotonic time, nanoseconds; read once per iteration and once per batch of received bytes.
    private(set) var now: UInt64
    /// `now` as wall-clock time: the wall clock's reading at the start plus the monotonic time
    /// since then.
    var nowMicroseconds: UInt64 { epochMicroseconds + (now - startNanoseconds) / 1000 }
    private(set) var nowUnixSeconds: UInt64
    private let startNanoseconds: UInt64
    private let epochMicroseconds: UInt64
    private var random: UInt64
    /// Earliest time of the next response, nanoseconds, if a scenario limits the rate.
    private var nextResponse: UInt64 = 0

    init(
        options: SimulatorOptions, tokenTopics: TopicTable, keys: [ProviderKey],
        journal: JournalFile?, start: ClockStart, seed: UInt64, devices: DeviceStore? = nil,
        trust: TokenTrust? = nil, goneTime: GoneTime = .computed,
        channels: ChannelStore = ChannelStore(), instruments: Instruments = Instruments()
    ) {
        self.options = options
        self.instruments = instruments
        self.tokenTopics = tokenTopics
        self.devices = devices
        self.channels = channels
        checks = RequestChecks(
            outcome: TokenOutcome(
                badToken: options.badToken, unregistered: options.unregistered, seed: options.seed,
                goneTime: goneTime),
            trust: trust)
        verifier = ProviderTokenVerifier(keys: keys)
        self.journal = journal.map { JournalWriter($0) }
        head = RequestHead()
        startNanoseconds = start.nanoseconds
        epochMicroseconds = start.microseconds
        now = start.nanoseconds
        nowUnixSeconds = start.microseconds / 1_000_000
        random = seed
        readClock()
    }

    /// Reads the clock.
    func readClock() {
        let time = ClockStart.monotonicNanoseconds()
        assert(time >= now, "time does not go back")
        now = time
        nowUnixSeconds = nowMicroseconds / 1_000_000
    }

    /// Whether responses are delayed instead of being sent immediately.
    var delaysResponses: Bool {
        options.latencyNanoseconds > 0 || options.latencyJitterNanoseconds > 0
            || run?.scenario.latency != nil
    }

    /// Whether a request's device token must be kept until the request is complete.
    var keepsTokens: Bool {
        journal != nil || devices != nil || run?.scenario.tokenRate != nil
            || run?.scenario.lateUnregistered != nil || instruments.needTokens
    }

    /// Whether requests are kept as a whole.
    var keepsRequests: Bool { instruments.received != nil }

    /// Maximum time for which a connection may have no requests; nil for no limit.
    var idleNanoseconds: UInt64? {
        run?.scenario.idleNanoseconds ?? SimulatorLimits.idleNanoseconds
    }

    /// Returns the time at which a request that is complete now gets its response.
    ///
    /// - Parameter connectionNext: Earliest time of the next response on this connection,
    ///   nanoseconds. Used only if a scenario limits the rate of responses per connection.
    func dueTime(connectionNext: inout UInt64) -> UInt64 {
        if let latency = run?.scenario.latency {
            return latency.isCapacityByConnection
                ? dueTime(latency, next: &connectionNext) : dueTime(latency, next: &nextResponse)
        }
        let jitter = options.latencyJitterNanoseconds
        guard jitter > 0 else { return now + options.latencyNanoseconds }
        random &+= 0x9e37_79b9_7f4a_7c15
        let spread = splitmix64(random) % (2 * jitter + 1)
        let delay = options.latencyNanoseconds + spread
        return now + (delay > jitter ? delay - jitter : 0)
    }

    private func dueTime(_ latency: Latency, next: inout UInt64) -> UInt64 {
        func share() -> Double {
            random &+= 0x9e37_79b9_7f4a_7c15
            return Double(splitmix64(random) >> 11) * 0x1p-53
        }
        var due = now + latency.sample(share(), share())
        due += latency.perWaitingNanoseconds &* UInt64(queue.count)
        if latency.capacityPerSecond > 0 {
            next = max(next, now) + 1_000_000_000 / latency.capacityPerSecond
            due = max(due, next)
        }
        return due
    }

    /// Examines a header block with the credential of its connection.
    func examine(
        _ head: borrowing RequestHead, _ credential: inout ConnectionCredential, topics: TopicTable
    ) -> Verdict {
        let authorization = head[.authorization]
        return checks.examine(
            head, topics: topics,
            allows: { topic in
                guard let allowed = credential.topics(verifier) else { return true }
                return allowed.contains(topics.bundle(of: topic))
            },
            authenticate: { authenticate(authorization, &credential) })
    }

    /// Checks a request's credential; returns the reason for refusing it, or nil if it is valid.
    func authenticate(
        _ authorization: RawSpan?, _ credential: inout ConnectionCredential
    ) -> Reason? {
        if let fingerprint = credential.lastFingerprint, isExpired(fingerprint) {
            credential.forgetLast()
        }
        let reason = credential.refusal(
            authorization: authorization, verifier: &verifier,
            environment: options.environment, nowUnixSeconds: nowUnixSeconds)
        if let rule = run?.scenario.tokenUpdates, updatesTooSoon(credential, reason, rule) {
            return .tooManyProviderTokenUpdates
        }
        if let reason { return reason }
        if credential.hasTextualIssueTime { totals.count(.textualIssueTime) }
        guard let fingerprint = credential.lastFingerprint else { return nil }
        if isExpired(fingerprint) { return .expiredProviderToken }
        if let expiredTokens = instruments.expiredTokens, notedToken != fingerprint {
            expiredTokens.note(fingerprint)
            notedToken = fingerprint
        }
        return nil
    }

    /// Returns whether the scenario or a test has expired a provider token.
    private func isExpired(_ fingerprint: UInt64) -> Bool {
        run?.isExpired(fingerprint) ?? false
            || instruments.expiredTokens?.isExpired(fingerprint) ?? false
    }

    /// Returns whether the key that signed the last token is valid for an app.
    func allows(_ app: [UInt8], _ credential: ConnectionCredential) -> Bool {
        credential.topics(verifier)?.contains(app) ?? true
    }

    /// Counts the use of a provider token by a source address. Returns whether the token is valid
    /// but follows another token of the address too soon.
    private func updatesTooSoon(
        _ credential: ConnectionCredential, _ reason: Reason?, _ rule: TokenUpdateRule
    ) -> Bool {
        guard let run, let address = credential.address,
            let fingerprint = credential.presentedFingerprint,
            reason != .invalidProviderToken || rule.countsInvalid
        else { return false }
        let isAllowed = run.allowsToken(fingerprint, from: address, rule, now: now)
        return !isAllowed && reason == nil
    }

    /// Returns a new `apns-unique-id`; nil in production, because APNs sends this header only in
    /// the development environment.
    func uniqueID() -> NotificationIDText? {
        guard options.environment == .development else { return nil }
        // The ID is in lower case, unlike the `apns-id` that APNs generates. Hyphens already have
        // this bit set.
        let identifier = newIdentifier()
        return NotificationIDText { identifier[$0] | 0x20 }
    }

    /// Returns the request's `apns-id`. If it has none, returns a new ID in upper case, as APNs
    /// does.
    func identifier(_ head: borrowing RequestHead) -> NotificationIDText {
        if let given = head[.identifier], RequestChecks.isUUID(given) {
            return NotificationIDText { position in given[position] }
        }
        return newIdentifier()
    }

    /// Returns the `apns-request-id` of a request about channels, or a new ID if it has none.
    func requestIdentifier(_ head: borrowing RequestHead) -> NotificationIDText {
        if let given = head.requestID, RequestChecks.isUUID(given.span.rawBytes) {
            return NotificationIDText { position in given[position] }
        }
        return newIdentifier()
    }

    private func newIdentifier() -> NotificationIDText {
        random &+= 2
        let high = splitmix64(random)
        let low = splitmix64(random &+ 1)
        let text: StaticString = "0123456789ABCDEF"
        let digits = text.rawBytes
        return NotificationIDText { position in
            if position == 8 || position == 13 || position == 18 || position == 23 {
                return UInt8(ascii: "-")
            }
            // Version 4 and variant 10 (RFC 9562 section 5.4).
            if position == 14 { return UInt8(ascii: "4") }
            let shift = UInt64(position % 16) * 4
            var nibble = Int((position < 18 ? high : low) >> shift & 0xf)
            if position == 19 { nibble = 8 | nibble & 3 }
            return digits[nibble]
        }
    }
}
