import Broadside
import BroadsideAPNs
import BroadsideEngine
import BroadsideHPACK
import BroadsideLedgerFormat
import BroadsideLists
import BroadsidePayloads
import BroadsidePolicy
import BroadsideSupport

/// Decisions of a seed before the start: the campaign, its list, its settings, and the faults of
/// each process.
struct SimulationPlan {
    let seed: UInt64
    /// Whether newer attempts claim the ledger repeatedly, and run in parallel with older ones.
    let hasSenders: Bool
    let list: SimulatedList
    /// Arms of the campaign; nil if there are none.
    let arms: ScriptedArms?
    /// Local times at which rows are sent; nil: all rows are due at once.
    let waves: ScriptedWaves?
    let campaign: UInt64
    /// The payload, or the part with which the payload of each row begins.
    let payload: [UInt8]
    /// How often a row's token occurs in its payload; 0: all rows have the same payload.
    let repetitions: Int
    let topic: [UInt8]
    let expiration: [UInt8]?
    let collapseIdentifier: [UInt8]?
    let usesProviderToken: Bool
    /// Settings of a campaign to a legacy gateway; nil for a campaign over HTTP/2.
    let gateway: ScriptedGateway?
    /// Age of the provider token at the first start, in seconds.
    let tokenAge: UInt64
    let addresses: Int

    let reactors: Int
    let connections: Int
    let streams: Int
    let rate: UInt64?
    /// How the rate rises to that value; nil: it does not rise.
    let ramp: ScriptedRamp?
    let ratePerConnection: UInt64?
    let onLost: LostResponsePolicy
    let abortAfter: Int
    let requestTimeout: UInt64
    let retryPolicy: RetryPolicy
    let giveUpAfter: UInt64
    let giveUpAfterIsExplicit: Bool
    /// `--canary` and `--canary-max-rejected`.
    let canary: (rows: Int, percent: Double)?

    /// `--max-invalid`.
    let maxInvalid: Double

    /// Limits of a reactor.
    let bounds: ScriptedBounds

    /// Fault plans of the first processes. Later processes have no faults.
    let faultPlans: [FaultPlan]
    /// Generator for all random events.
    let random: SimulationRandom

    static let authority = Array("api.push.example".utf8)
    static let pushType = Array("alert".utf8)
    static let priority = Array("10".utf8)

    /// - Parameters:
    ///   - seed: Number that decides everything.
    ///   - hasSenders: Whether several senders run the campaign at the same time.
    ///   - hasWaves: Whether rows are always sent at their local time.
    init(seed: UInt64, hasSenders: Bool = false, hasWaves: Bool = false) {
        self.hasSenders = hasSenders
        var random = SimulationRandom(seed: seed)
        self.seed = seed
        bounds = ScriptedBounds(seed: seed)
        campaign = random.next()
        let rowCount = random.between(0...(random.pick([3, 40, 300, 300, 2500])))
        let gateway = ScriptedGateway(seed: seed, rows: rowCount)
        self.gateway = gateway
        // A gateway gets no row numbers. Only the token identifies a row.
        list = SimulatedList(
            rowCount: rowCount, hasCopies: gateway == nil && seed / 5 % 6 == 2,
            isUnique: gateway != nil, random: random.fork())
        let waves = ScriptedWaves(seed: seed, chance: hasWaves ? 1 : 0.2, rowCount: rowCount)
        self.waves = waves
        let drawnCount = random.pick([2, 30, 242, 1000, 4096])
        let payloadCount = gateway?.payloadCount ?? drawnCount
        // It uses no random numbers, so that a seed's other draws stay the same.
        repetitions =
            gateway?.repetitions
            ?? (payloadCount < 4096 ? [0, 0, 0, 1, 3, 12][Int(seed / 7 % 6)] : 0)
        payload = Self.payload(payloadCount)
        topic = Array("com.example.news".utf8)
        expiration = random.chance(0.5) ? Array("1900000000".utf8) : nil
        collapseIdentifier = random.chance(0.5) ? Array("breaking".utf8) : nil
        usesProviderToken = random.chance(0.7) && gateway == nil
        tokenAge = random.pick([300, 1790, 1900, 2090])
        addresses = random.between(1...3)
        reactors = random.pick([1, 1, 2, 3])
        connections = random.pick([1, 2, 2, 4])
        let drawnStreams = random.pick([1, 7, 100, 100, 1000])
        streams = gateway?.window ?? drawnStreams
        rate = random.chance(0.3) ? random.pick([20, 150, 1000, 20_000]) : nil
        ramp = ScriptedRamp(seed: seed, rate: rate)
        ratePerConnection = random.chance(0.15) ? random.pick([50, 500]) : nil
        onLost = random.chance(0.5) ? .record : .resend
        abortAfter = random.pick([5, 50, 50, 1000])
        let timeout = random.pick([5, 30]) * second
        requestTimeout = timeout
        let (attempts, retryFor) = (random.pick([2, 5]), random.pick([0, 10, 900]) * second)
        giveUpAfter = random.pick([40, 60, 200]) * second
        retryPolicy = RetryPolicy(
            maximumAttempts: attempts, retryForNanoseconds: retryFor,
            longestDelayNanoseconds: RetryPolicy.longestDelay(giveUpAfter: giveUpAfter))
        giveUpAfterIsExplicit = random.chance(0.5)
        let hasToken = usesProviderToken
        let reactorCount = reactors
        let canWait = requestTimeout == 30 * second && rowCount <= 300
        // The list must not have so many invalid rows in a row that the run stops. It uses no
        // random numbers.
        maxInvalid = waves == nil ? [100, 100, 10, 25, 1][Int(seed / 11 % 5)] : 100
        let namesReasons =
            abortAfter >= 50 && ScriptedBounds.namesReasons(seed: seed, rows: rowCount)
        // Later waves must have faults, too.
        let storms = random.pick([0, 1, 1, 2, 4]) + (waves == nil ? 0 : Int(seed % 3))
        faultPlans = (0..<storms).map { process in
            var faults = FaultPlan.storm(&random)
            if gateway != nil {
                faults.turnToGateway(
                    GatewayFaults(
                        seed: seed, process: process, rows: rowCount, silence: timeout / 6),
                    seed: seed)
                faults.addAmbushes(seed: seed, process: process, isGateways: true)
                return faults
            }
            faults.addWrongSetting(seed: seed, process: process)
            faults.addFaultyTokens(seed: seed, process: process)
            faults.addSilentNames(seed: seed, process: process)
            faults.addSlowList(seed: seed, process: process)
            faults.addFullServers(seed: seed, process: process, reactors: reactorCount)
            let isUseless = faults.addUselessServers(seed: seed, canWait: canWait)
            let starvation = Starvation(
                seed: seed, process: process, rows: rowCount, payloadCount: payloadCount)
            if let starvation, !isUseless {
                faults.add(starvation, isAlone: (seed + UInt64(process)) % 3 > 0)
            }
            let limits = AnnouncedLimits(
                seed: seed, process: process, payloadCount: payloadCount)
            if let limits { faults.add(limits) }
            if namesReasons { faults.addManyReasons() }
            let hostility = Hostility(
                seed: seed, process: process, usesProviderToken: hasToken)
            if let hostility, !isUseless, starvation == nil {
                faults.add(hostility, isAlone: (seed / 3 + UInt64(process)) % 3 > 0)
            }
            faults.halves = Halves(seed: seed, process: process)
            faults.oddStatuses = OddStatuses(seed: seed, process: process)
            // Only if the plan has other faults. Without them, the checks allow no other reason to
            // give up.
            if !isUseless, starvation == nil, hostility == nil {
                faults.addAmbushes(seed: seed, process: process, isGateways: false)
            }
            return faults
        }
        let drawnCanary: (rows: Int, percent: Double)? =
            random.chance(0.25)
            ? (random.pick([1, 5, 50, 400]), random.pick([0, 20, 20, 100])) : nil
        // Guards that check the whole list are only used without waves.
        canary = waves == nil ? drawnCanary : nil
        arms =
            gateway == nil && repetitions > 0 && canary == nil && maxInvalid == 100
            ? ScriptedArms(seed: seed, list: list) : nil
        self.random = random.fork()
    }

    private static func payload(_ count: Int) -> [UInt8] {
        guard count > 20 else { return Array("{}".utf8) }
        let frame = Array(#"{"aps":{"alert":""}}"#.utf8)
        var payload = Array(frame.dropLast(4))
        for index in 0..<(count - frame.count) { payload.append(UInt8(97 + index % 26)) }
        return payload + frame.suffix(4)
    }

    /// Common prefix of all apns-ids of the campaign.
    var idPrefix: [UInt8] {
        Array(
            identifier(row: 0).prefix(NotificationID.rowDigitsOffset))
    }

    /// A row's apns-id.
    func identifier(row: UInt64) -> [UInt8] {
        [UInt8](unsafeUninitializedCapacity: NotificationID.textCount) { buffer, count in
            let memory = UnsafeMutableRawBufferPointer(buffer)
            var output = OutputRawSpan(buffer: memory, initializedCount: 0)
            NotificationID(campaign: campaign, part: part?.index ?? 0, row: row)
                .write(into: &output)
            count = output.finalize(for: memory)
        }
    }

    func faults(epoch: Int) -> FaultPlan {
        var faults = epoch <= faultPlans.count ? faultPlans[epoch - 1] : FaultPlan.calm
        faults.refusesTokens = refusesTokens
        return faults
    }

    /// Whether the servers refuse each token of a part that is too short for `--abort-after` to
    /// notice. It uses no random numbers.
    var refusesTokens: Bool {
        part != nil && gateway == nil && seed / 3 % 4 == 1 && list.tokens.count < abortAfter
    }

    /// `--limit` of a process; nil: all rows belong to it. It uses its own generator, and is not
    /// combined with guards that check the whole list.
    func limit(epoch: Int) -> UInt64? {
        guard epoch <= faultPlans.count, maxInvalid == 100, canary == nil, waves == nil else {
            return nil
        }
        var random = SimulationRandom(seed: seed ^ 0x6c69_6d69_7473_0001 &+ UInt64(epoch) << 32)
        guard random.chance(0.2) else { return nil }
        return UInt64(random.between(1...max(1, list.tokens.count)))
    }

    /// Whether nothing is sent to a row, because its device is held out.
    func isHeldOut(_ row: Int) -> Bool {
        guard let arms, let holdout = arms.holdout else { return false }
        return arms.armOfRow[row] == holdout
    }

    /// Whether a row has a valid token and is not held out.
    func isSent(_ row: Int) -> Bool { list.tokens[row] != nil && !isHeldOut(row) }

    /// Rows that a process settles without sending them; nil if there are none.
    func skips() throws -> ExclusionIndex? {
        guard let split = arms?.split, let set = settings().personal else { return nil }
        let scan = try ExclusionScan(
            of: nil, suppress: nil, skipsDuplicates: false, split: split, tokenColumn: nil,
            payloads: set)
        return try scan?.listAside(of: TokenList(lines: list.bytes, layout: list.layout))
    }

    /// Maximum number of additional processes because of waves: for each zone, and for passes that
    /// quiet hours divide.
    var passesMost: Int { waves.map { 8 * $0.zones.count + 16 } ?? 0 }

    /// Payload that a row's request must have.
    func payload(row: Int) -> [UInt8] {
        guard repetitions > 0 else { return payload }
        // A tab is the only byte in these lists that JSON escapes.
        let text = list.texts[row].flatMap { $0 == 0x09 ? Array("\\t".utf8) : [$0] }
        return personal(
            Array(repeating: text, count: repetitions).flatMap { $0 }, arm: arms?.armOfRow[row] ?? 0
        )
    }

    /// Number of bytes of that payload.
    func payloadCount(row: Int) -> Int {
        guard repetitions > 0 else { return payload.count }
        let text = list.texts[row]
        let escaped = text.count + text.count { $0 == 0x09 }
        return Self.frameCount + payload.count + repetitions * escaped
    }

    /// Number of bytes around the payload and the text.
    private static let frameCount = #"{"x":,"t":""}"#.utf8.count

    private func personal(_ text: [UInt8], arm: UInt8) -> [UInt8] {
        Array(#"{"\#(ScriptedArms.key(arm))":"#.utf8) + payload + Array(#","t":""#.utf8) + text
            + Array(#""}"#.utf8)
    }

    func settings() -> ReactorSettings {
        var settings = sharedSettings()
        // Only the seed decides it, so that other draws stay the same.
        if seed % 3 == 2 { settings.indexingPolicy = .compact }
        if seed % 5 > 1 { settings.pace = .adaptive }
        settings.connections = connectionsMost
        settings.limits = bounds.limits
        settings.binary = gateway?.settings(silence: silence)
        guard repetitions > 0 else { return settings }
        let text = Array(String(repeating: "{{token}}", count: repetitions).utf8)
        let numbers = arms.map { $0.split.arms.indices.map { UInt8($0 + 1) } } ?? [0]
        let templates = numbers.compactMap {
            try? PayloadTemplate(personal(text, arm: $0).span.bytes)
        }
        precondition(templates.count == numbers.count, "the plan's payloads are templates")
        settings.personal = PayloadSet(
            templates: templates, choice: nil, collapse: nil, arms: arms?.payloads,
            limit: gateway.map { $0.command == 2 ? 2048 : 256 } ?? 4096)
        return settings
    }

    /// The part of the campaign that the list is, in every third seed; nil in all others.
    var part: CampaignPart? {
        guard seed % 3 == 1 else { return nil }
        return CampaignPart(
            index: UInt16(seed / 3 % UInt64(CampaignPart.countMax)) + 1,
            count: CampaignPart.countMax)
    }

    /// The number in the headers of the ledger's segments.
    var segmentNumber: UInt64 {
        Manifest.segmentNumber(campaign: campaign, part: part?.index ?? 0)
    }

    private func sharedSettings() -> ReactorSettings {
        var settings = ReactorSettings(
            campaign: campaign, authority: Self.authority, topic: topic, pushType: Self.pushType,
            priority: Self.priority, expiration: expiration,
            collapseIdentifier: collapseIdentifier, payload: payload, connections: connections,
            streamsPerConnection: streams,
            milliRatePerConnection: ratePerConnection.map { $0 * 1000 },
            usesProviderToken: usesProviderToken, onLost: onLost, retryPolicy: retryPolicy,
            requestTimeout: requestTimeout, giveUpAfter: giveUpAfter,
            giveUpAfterIsExplicit: giveUpAfterIsExplicit, abortAfter: abortAfter,
            reactors: reactors, seed: seed)
        settings.part = part?.index ?? 0
        return settings
    }
}
