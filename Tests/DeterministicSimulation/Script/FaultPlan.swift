import Broadside
import BroadsideSupport

/// The faults of one process. Each probability applies to every occasion.
struct FaultPlan {
    // Faults of the network.
    var latency: UInt64 = 5 * millisecond
    var jitter: UInt64 = millisecond
    var tearing = 0.0
    var shortSend = 0.0
    var connectFailure = 0.0
    var connectSilence = 0.0
    /// Maximum number of connections that servers accept at a time. They refuse others. 0: no
    /// limit.
    var connectionsMost = 0
    var resolveFailure = 0.0
    /// Chance that a look-up takes up to a minute, because all name servers except the last are
    /// silent. 1: each look-up takes up to four minutes, longer than any run waits for responses.
    var silentNames = 0.0
    /// Chance that a connection is reset, or falls silent, at some time.
    var reset = 0.0
    var silence = 0.0
    /// Maximum additional time of each piece of bytes compared with the previous one.
    var trickle: UInt64 = 0
    /// Chance that a look-up returns only some of the addresses.
    var addressChange = 0.0
    /// Number of bytes that the network buffers for a server that reads slowly.
    var sendBufferCount = 1 << 20

    // Faults of the disk.
    var writeDelay: UInt64 = 100_000
    var syncDelay: UInt64 = 5 * millisecond
    var shortWrite = 0.0
    var diskFailure = 0.0

    // Faults of the list.
    /// Chance that two rows of a reserved chunk have changed places when the process begins.
    var listChange = 0.15
    /// Maximum time to read a chunk; 0: a moment.
    var listDelay: UInt64 = 0

    // Faults of responses. With the remaining probability, a request gets the response that its
    // token determines.
    var answerDelay: UInt64 = 20 * millisecond
    var busy = 0.0
    var trouble = 0.0
    /// One token in this many always gets a server error; 0: none.
    var faultyTokens: UInt64 = 0
    var refused = 0.0
    var resetStream = 0.0
    var silentStream = 0.0
    var credential = 0.0
    var earlyAnswer = 0.0
    var strangeReason = 0.0
    /// Whether each token is refused, as in a campaign for the wrong environment. This continues
    /// after all other faults have ended.
    var refusesTokens = false
    /// Whether each token has its own unknown reason.
    var hasManyReasons = false
    /// Date from which provider tokens cause TooManyProviderTokenUpdates, seconds since 1970; 0:
    /// none do.
    var refusesTokensFrom: UInt64 = 0
    /// Date before which provider tokens count as expired, seconds since 1970.
    var expiresTokensBefore: UInt64 = 0

    // Faults of a server's connections.
    var goAway = 0.0
    /// Number of requests after which a connection is closed; 0: never.
    var requestsPerConnection = 0
    /// Chance that a GOAWAY has an error code or a reason.
    var goAwayError = 0.0
    /// Chances that a connection stalls, is closed in one direction, or breaks HTTP/2 at some time;
    /// and that a response comes twice.
    var stall = 0.0
    var halfClose = 0.0
    var violation = 0.0
    var duplicate = 0.0
    var settingsChanges = 0.0
    var maxStreams: UInt32? = 1000
    var initialWindow: UInt32 = 65_535
    var headerTable: UInt32 = 4096
    /// Size to which the connection's window is opened at the start.
    var connectionWindow = 65_535
    var windowDelay: UInt64 = 0
    /// Chance that received bytes are never credited to the connection's window.
    var windowLoss = 0.0
    /// Chance that the server of a connection reads only a kilobyte per second.
    var slowReading = 0.0
    var answersPings = true
    /// Tiny windows, and changes of windows and frame sizes; nil if there are none.
    var limits: AnnouncedLimits?
    /// Connections that at some time have no more room for requests; nil if there are none.
    var starvation: Starvation?
    /// Servers with one permanent fault; nil if there are none.
    var hostility: Hostility?
    /// Faults of legacy gateways, if the campaign uses them.
    var gateway = GatewayFaults()
    /// Partial and wrong responses.
    var halves = Halves.none
    var oddStatuses = OddStatuses.none

    // Actions of the operator.
    var signal = 0.0
    var secondSignal = 0.0
    /// How often the credentials are read again.
    var reloads = 0
    /// How often the whole process is frozen.
    var freezes = 0
    /// Chance that the process dies, and that the power fails with it.
    var death = 0.0
    var powerCut = 0.5
    /// Number of the event at which the process dies; 0: it does not.
    var deathStep = 0
    /// Chance that the rate is changed while the process runs.
    var rateChange = 0.0
    /// Faults that wait for a condition.
    var ambushes: [Ambush] = []
    /// Maximum time from the start to a signal or death.
    var life: UInt64 = 3 * second

    /// A plan without faults.
    static let calm = FaultPlan()

    /// A plan in which each kind of fault is drawn independently.
    static func storm(_ random: inout SimulationRandom) -> FaultPlan {
        var faults = FaultPlan()
        faults.network(&random)
        faults.answers(&random)
        faults.connections(&random)
        if random.chance(0.2) { faults.signal = 0.7 }
        if random.chance(0.5) { faults.secondSignal = 0.3 }
        if random.chance(0.5) { faults.death = 0.9 }
        if random.chance(0.15) { faults.deathStep = random.between(1...random.pick([60, 3000])) }
        if random.chance(0.2) { faults.rateChange = 0.8 }
        if random.chance(0.3) { faults.reloads = random.between(1...3) }
        if random.chance(0.1) { faults.freezes = random.between(1...2) }
        faults.powerCut = random.pick([0, 0.5, 1])
        faults.life = random.pick([50, 400, 3000, 20_000]) * millisecond
        return faults
    }

    /// In a few seeds, servers accept fewer connections than there are reactors: one reactor sends,
    /// and another waits in vain. It uses no random numbers.
    mutating func addFullServers(seed: UInt64, process: Int, reactors: Int) {
        if reactors > 1, (seed / 7 + UInt64(process)) % 6 == 1 { connectionsMost = reactors - 1 }
    }

    /// In a few seeds, some tokens always get a server error. It uses no random numbers.
    mutating func addFaultyTokens(seed: UInt64, process: Int) {
        guard (seed / 11 + UInt64(process)) % 8 == 4 else { return }
        faultyTokens = [2, 3, 20, 100][Int(seed % 4)]
    }

    /// In a few seeds, name servers are silent. It uses no random numbers.
    mutating func addSilentNames(seed: UInt64, process: Int) {
        if (seed / 17 + UInt64(process)) % 16 == 3 { silentNames = seed % 2 == 0 ? 0.3 : 1 }
    }

    /// In a few seeds, the list's disk stalls now and then. It uses no random numbers.
    mutating func addSlowList(seed: UInt64, process: Int) {
        guard (seed / 19 + UInt64(process)) % 16 == 6 else { return }
        listDelay = (seed % 3 == 0 ? 60 : 4) * second
    }

    /// In a few seeds, servers refuse the credential of each request, and are sometimes busy. It
    /// uses no random numbers.
    mutating func addWrongSetting(seed: UInt64, process: Int) {
        guard (seed / 5 + UInt64(process)) % 24 == 7 else { return }
        credential = 1
        busy = 0.4
    }

    /// In a few seeds, servers are alive but not usable. It uses no random numbers, so that the
    /// other seeds stay the same.
    ///
    /// - Parameter canWait: Whether the client waits long enough for slow responses, and the list
    ///   is short.
    /// - Returns: Whether the seed has such servers.
    mutating func addUselessServers(seed: UInt64, canWait: Bool) -> Bool {
        let isWindowLost = seed / 11 % 12 == 3
        let isSlowAnswer = seed / 11 % 12 == 7 && canWait
        let isSlowReader = seed / 13 % 16 == 5
        // Without any other fault, there is no other reason to give up.
        if isWindowLost, seed % 2 == 1 {
            self = .calm
            windowLoss = 0.9
        } else if isWindowLost {
            windowLoss = 0.3
        }
        // Only the responses to PING show that the server is alive.
        if isSlowAnswer {
            self = .calm
            answerDelay = 14 * second
        }
        if isSlowReader {
            slowReading = 0.5
            if seed % 2 == 0 { violation = max(violation, 0.3) }
        }
        return isWindowLost || isSlowAnswer || isSlowReader
    }

    private mutating func network(_ random: inout SimulationRandom) {
        latency = random.pick([20_000, millisecond, 20 * millisecond, 200 * millisecond])
        jitter = random.pick([0, latency / 4, latency * 2])
        if random.chance(0.6) { tearing = random.pick([0.1, 0.5, 0.95]) }
        if random.chance(0.5) { shortSend = random.pick([0.1, 0.6]) }
        if random.chance(0.2) { connectFailure = random.pick([0.1, 0.5]) }
        if random.chance(0.1) { connectSilence = 0.2 }
        if random.chance(0.1) { resolveFailure = 0.5 }
        if random.chance(0.2) { addressChange = 0.5 }
        if random.chance(0.15) { trickle = random.pick([1, 40]) * millisecond }
        if random.chance(0.4) { reset = random.pick([0.1, 0.5, 0.9]) }
        if random.chance(0.15) { silence = random.pick([0.1, 0.5]) }
        if random.chance(0.3) { sendBufferCount = random.pick([1000, 5000, 30_000]) }
        writeDelay = random.pick([10_000, 200_000, 50 * millisecond])
        syncDelay = random.pick([50_000, 5 * millisecond, 500 * millisecond])
        if random.chance(0.3) { shortWrite = 0.3 }
        if random.chance(0.04) { diskFailure = 0.02 }
    }

    private mutating func answers(_ random: inout SimulationRandom) {
        answerDelay = random.pick([0, 2, 50, 500, 4000]) * millisecond
        if random.chance(0.3) { busy = random.pick([0.02, 0.3]) }
        if random.chance(0.25) { trouble = random.pick([0.005, 0.1]) }
        if random.chance(0.3) { refused = random.pick([0.01, 0.2]) }
        if random.chance(0.25) { resetStream = random.pick([0.01, 0.1, 0.9]) }
        if random.chance(0.15) { silentStream = random.pick([0.005, 0.03]) }
        if random.chance(0.08) { credential = random.pick([0.002, 0.2, 1]) }
        if random.chance(0.15) { earlyAnswer = 0.05 }
        if random.chance(0.2) { strangeReason = 0.02 }
    }

    private mutating func connections(_ random: inout SimulationRandom) {
        if random.chance(0.4) { goAway = random.pick([0.2, 0.9]) }
        if random.chance(0.3) { goAwayError = random.pick([0.3, 1]) }
        if random.chance(0.15) { stall = random.pick([0.2, 0.8]) }
        if random.chance(0.15) { halfClose = random.pick([0.2, 0.6]) }
        if random.chance(0.15) { violation = random.pick([0.2, 0.6]) }
        if random.chance(0.1) { duplicate = 0.01 }
        if random.chance(0.15) {
            requestsPerConnection = random.between(1...random.pick([3, 200]))
        }
        if random.chance(0.35) { settingsChanges = random.pick([0.3, 1]) }
        maxStreams = random.pick([1000, 1000, 1000, 100, 10, 1, nil])
        initialWindow = random.pick([65_535, 65_535, 1 << 20, 16_384, 300, 50, 0])
        headerTable = random.pick([4096, 4096, 65_536, 200, 60, 0])
        connectionWindow = random.pick([65_535, 65_535, 1 << 20])
        windowDelay = random.pick([0, 0, millisecond, 100 * millisecond, 2 * second])
        answersPings = !random.chance(0.1)
    }
}
