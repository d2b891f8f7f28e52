import Broadside
import BroadsideSupport

/// What the simulation does to one process of the engine. Probabilities are of each occasion.
struct FaultPlan {
    // The network.
    var latency: UInt64 = 5 * millisecond
    var jitter: UInt64 = millisecond
    var tearing = 0.0
    var shortSend = 0.0
    var connectFailure = 0.0
    var connectSilence = 0.0
    /// Servers take so many connections at a time and refuse the others; 0: any number.
    var connectionsMost = 0
    var resolveFailure = 0.0
    /// Chance of a look-up to take up to a minute: of several name servers all but the last are silent. 1: each
    /// takes up to four minutes, longer than any run waits for responses.
    var silentNames = 0.0
    /// Chance of a connection to be reset, or to fall silent, some time in its life.
    var reset = 0.0
    var silence = 0.0
    /// Each piece of bytes takes up to so much longer than the one before.
    var trickle: UInt64 = 0
    /// Chance of a look-up to name only some of the addresses.
    var addressChange = 0.0
    /// Bytes that the network holds for a server that reads slowly.
    var sendBufferCount = 1 << 20

    // The disk.
    var writeDelay: UInt64 = 100_000
    var syncDelay: UInt64 = 5 * millisecond
    var shortWrite = 0.0
    var diskFailure = 0.0

    // The list.
    /// Chance that two rows of a reserved chunk have changed places when the process begins.
    var listChange = 0.15
    /// Reading a chunk takes up to so long; 0: a moment.
    var listDelay: UInt64 = 0

    // The server's answers; what is left of 1 is what the token deserves.
    var answerDelay: UInt64 = 20 * millisecond
    var busy = 0.0
    var trouble = 0.0
    var refused = 0.0
    var resetStream = 0.0
    var silentStream = 0.0
    var credential = 0.0
    var earlyAnswer = 0.0
    var strangeReason = 0.0
    /// Each token is refused, as in a campaign for the wrong environment, also once all else is well.
    var refusesTokens = false
    /// Each token has a strange reason of its own.
    var hasManyReasons = false
    /// Provider tokens made from this many seconds since 1970 on are too many; 0: none are.
    var refusesTokensFrom: UInt64 = 0
    /// Provider tokens made before this many seconds since 1970 count as expired.
    var expiresTokensBefore: UInt64 = 0

    // The server's connections.
    var goAway = 0.0
    /// Closed after so many requests; 0: never.
    var requestsPerConnection = 0
    /// Chance of a GOAWAY to name an error, or a reason.
    var goAwayError = 0.0
    /// Chance of a connection to hang for a while, to be ended in one direction, or to break HTTP/2
    /// some time in its life; and of an answer to come twice.
    var stall = 0.0
    var halfClose = 0.0
    var violation = 0.0
    var duplicate = 0.0
    var settingsChanges = 0.0
    var maxStreams: UInt32? = 1000
    var initialWindow: UInt32 = 65_535
    var headerTable: UInt32 = 4096
    /// The connection's window is opened to so much at the start.
    var connectionWindow = 65_535
    var windowDelay: UInt64 = 0
    /// Chance that what arrived is never given back to the connection's window.
    var windowLoss = 0.0
    /// Chance of a connection whose server reads a kilobyte a second.
    var slowReading = 0.0
    var answersPings = true
    /// Tiny windows, and changes of windows and frame size; nil: there are none.
    var limits: AnnouncedLimits?
    /// Connections that one day leave no room for a request; nil: none does.
    var starvation: Starvation?
    /// Servers that do one thing wrong all the time; nil: none does.
    var hostility: Hostility?
    /// How legacy gateways fare, where the campaign goes to one.
    var gateway = GatewayFaults()
    /// Responses in part, and other things that are half right.
    var halves = Halves.none
    var oddStatuses = OddStatuses.none

    // The operator.
    var signal = 0.0
    var secondSignal = 0.0
    /// How often the credentials are read again.
    var reloads = 0
    /// How often the process is stopped as a whole.
    var freezes = 0
    /// Chance that the process dies, and that the power fails with it.
    var death = 0.0
    var powerCut = 0.5
    /// The process dies at this event of its life; 0: it doesn't.
    var deathStep = 0
    /// Chance that the rate is changed while the process runs.
    var rateChange = 0.0
    /// What waits for its victim.
    var ambushes: [Ambush] = []
    /// The instant of a signal or death is drawn up to here after the start.
    var life: UInt64 = 3 * second

    /// All is well.
    static let calm = FaultPlan()

    /// A bad day: each kind of trouble comes or stays away by itself.
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

    /// Servers that take fewer connections than there are reactors, in a few seeds: one of them sends, and
    /// another waits in vain. No draws of its own.
    mutating func addFullServers(seed: UInt64, process: Int, reactors: Int) {
        if reactors > 1, (seed / 7 + UInt64(process)) % 6 == 1 { connectionsMost = reactors - 1 }
    }

    /// Name servers that are silent, in a few seeds. No draws of its own.
    mutating func addSilentNames(seed: UInt64, process: Int) {
        if (seed / 17 + UInt64(process)) % 16 == 3 { silentNames = seed % 2 == 0 ? 0.3 : 1 }
    }

    /// A list on a disk that hangs now and then, in a few seeds. No draws of its own.
    mutating func addSlowList(seed: UInt64, process: Int) {
        guard (seed / 19 + UInt64(process)) % 16 == 6 else { return }
        listDelay = (seed % 3 == 0 ? 60 : 4) * second
    }

    /// Servers that refuse the credential of each request, and are busy now and then, in a few seeds. No draws
    /// of its own.
    mutating func addWrongSetting(seed: UInt64, process: Int) {
        guard (seed / 5 + UInt64(process)) % 24 == 7 else { return }
        credential = 1
        busy = 0.4
    }

    /// Servers that live and are of no use, in a few seeds. No draws of their own, so that the other
    /// seeds stay what they were.
    ///
    /// - Parameter canWait: Whether the client awaits an answer that takes 20 s, and few enough of them.
    /// - Returns: Whether the seed has such servers.
    mutating func addUselessServers(seed: UInt64, canWait: Bool) -> Bool {
        let isWindowLost = seed / 11 % 12 == 3
        let isSlowAnswer = seed / 11 % 12 == 7 && canWait
        let isSlowReader = seed / 13 % 16 == 5
        // Where nothing else goes wrong, there is no other reason to give up.
        if isWindowLost, seed % 2 == 1 {
            self = .calm
            windowLoss = 0.9
        } else if isWindowLost {
            windowLoss = 0.3
        }
        // Nothing but the answers to PING tells that the server lives.
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
