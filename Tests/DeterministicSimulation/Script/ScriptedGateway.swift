import Broadside
import BroadsideEngine
import BroadsideLegacyGateway
import BroadsideSupport

/// A campaign to a legacy gateway, and its settings.
struct ScriptedGateway {
    /// 0: token and payload; 1: also identifier and expiration; 2: a frame of items.
    let command: Int
    /// Maximum number of notifications in flight on a connection.
    let window: Int
    let payloadCount: Int
    /// How often a row's token occurs in its payload.
    let repetitions: Int
    let expiration: UInt32?
    let priority: Int

    /// Draws the settings of a seed from their own generator; nil for a campaign over HTTP/2, as in
    /// most seeds.
    init?(seed: UInt64, rows: Int) {
        guard seed % 8 == 5 else { return nil }
        var random = SimulationRandom(seed: seed ^ 0x6761_7465_7761_0001)
        command = random.pick([2, 2, 2, 2, 1, 1, 0])
        // After each error, all later notifications in flight are sent again, so large windows take
        // much time.
        window = rows > 40 ? random.pick([20, 60, 150]) : random.pick([1, 3, 60, 1000])
        payloadCount = random.pick(command == 2 ? [2, 30, 242, 1000] : [2, 30, 200])
        let most = command == 2 ? 3 : payloadCount > 2 ? 0 : 1
        repetitions = random.pick([0, 0, most])
        expiration = command > 0 && random.chance(0.5) ? random.pick([0, 1_900_000_000]) : nil
        priority = command == 2 && random.chance(0.5) ? 5 : 10
    }

    /// The engine's settings.
    func settings(silence: UInt64) -> BinarySettings {
        BinarySettings(
            command: BinaryCommand(rawValue: UInt8(command))!, expiration: expiration,
            priority: UInt8(priority), silence: silence)
    }
}

/// How a gateway's connection ends after its error response.
enum GatewayEnding {
    case atOnce
    case later
    /// By a reset, which overtakes bytes in flight.
    case reset
    /// The client must end it.
    case never
}

/// What a gateway does with a notification.
enum GatewayFate {
    case take
    /// It refuses the notification.
    case refuse(status: UInt8)
    /// It accepts this notification as the last one.
    case shutDown
    /// It sends an error with another identifier: 0, or that of a notification that it never read.
    case nameless(status: UInt8)
    /// It ends the connection without an error response.
    case wordless
    /// Its error response is incomplete.
    case half(status: UInt8)
    /// Its response is not an error response.
    case junk
}

/// Faults of a process's gateways. Each probability applies to every notification.
struct GatewayFaults {
    var transient = 0.0
    var refusing = 0.0
    var credential = 0.0
    /// Whether some tokens always get a processing error.
    var isStubborn = false
    var nameless = 0.0
    var wordless = 0.0
    var half = 0.0
    var junk = 0.0
    /// Number of notifications after which the connection is shut down; 0: never.
    var shutdownAfter = 0
    /// Chance that a connection is shut down at some time, even if it is idle.
    var goodbye = 0.0
    /// Maximum time from a notification to its error response. Notifications that arrive in between
    /// are discarded.
    var errorDelay: UInt64 = 0
    var endings: [GatewayEnding] = [.atOnce]
    /// Chance of more bytes after the error response.
    var trailing = 0.0

    /// Creates faults that never occur.
    init() {}

    /// Draws the faults of a process from their own generator.
    init(seed: UInt64, process: Int, rows: Int, silence: UInt64) {
        let mixed = seed ^ 0x6761_7465_7761_0002 &+ UInt64(process) << 32
        var random = SimulationRandom(seed: mixed)
        let scale = rows > 300 ? 0.2 : rows > 40 ? 0.5 : 1
        if random.chance(0.4) { transient = scale * random.pick([0.02, 0.2]) }
        if random.chance(0.3) { refusing = scale * random.pick([0.02, 0.2]) }
        if random.chance(0.12) { credential = scale * random.pick([0.02, 0.3]) }
        if random.chance(0.3) { nameless = scale * random.pick([0.01, 0.1]) }
        if random.chance(0.25) { wordless = scale * random.pick([0.01, 0.05]) }
        if random.chance(0.2) { half = scale * random.pick([0.01, 0.05]) }
        if random.chance(0.1) { junk = scale * random.pick([0.01, 0.05]) }
        if random.chance(0.25) { shutdownAfter = random.between(1...random.pick([10, 200])) }
        if random.chance(0.25) { goodbye = random.pick([0.3, 0.9]) }
        errorDelay = random.pick([
            0, 0, millisecond, 50 * millisecond, second / 2, silence / 2, 2 * silence,
        ])
        let all: [GatewayEnding] = [.atOnce, .later, .reset, .never]
        endings = random.chance(0.5) ? all : [random.pick(all)]
        if random.chance(0.3) { trailing = 0.5 }
        isStubborn = random.chance(0.3)
    }

    func fate(of token: [UInt8], command: Int, taken: Int, random: inout SimulationRandom)
        -> GatewayFate
    {
        if shutdownAfter > 0, taken + 1 >= shutdownAfter { return .shutDown }
        if random.chance(wordless) { return .wordless }
        if random.chance(half) { return .half(status: random.pick([1, 8, 10, 255])) }
        if random.chance(junk) { return .junk }
        if random.chance(nameless) { return .nameless(status: random.pick([1, 8, 10, 255])) }
        if random.chance(transient) { return .refuse(status: random.pick([1, 1, 255, 0, 9, 77])) }
        if random.chance(refusing) { return .refuse(status: random.pick([2, 4, 5, 7, 128])) }
        if random.chance(credential) { return .refuse(status: random.pick([3, 6])) }
        // If errors have no identifier, one bad token would prevent all other rows forever.
        guard command > 0 else { return .take }
        let place = Self.place(token)
        if place < 3 { return .refuse(status: 8) }
        return isStubborn && place < 8 ? .refuse(status: 1) : .take
    }

    /// Number from 0 to 99 that decides about a token, always in the same way.
    private static func place(_ token: [UInt8]) -> UInt64 {
        var hash: UInt64 = 0xcbf2_9ce4_8422_2325
        for byte in token { hash = (hash ^ UInt64(byte)) &* 0x100_0000_01b3 }
        return (hash >> 20) % 100
    }

    /// Whether rows may be lost or delayed for a reason that lets a run give up.
    ///
    /// - Parameter command: With 0, each error loses the notifications in flight.
    func isTroubled(command: Int) -> Bool {
        (command == 0 && refusing + credential > 0)
            || transient + nameless + wordless + half + junk + goodbye > Ambush.chance
            || shutdownAfter > 0
            || endings.contains { $0 == .reset } || isStubborn
    }
}

extension FaultPlan {
    /// Keeps the faults of connections, disk and operator, but not those of HTTP/2 servers.
    mutating func turnToGateway(_ gateway: GatewayFaults, seed: UInt64) {
        let calm = FaultPlan.calm
        busy = 0
        trouble = 0
        refused = 0
        resetStream = 0
        silentStream = 0
        credential = 0
        earlyAnswer = 0
        strangeReason = 0
        goAway = 0
        goAwayError = 0
        requestsPerConnection = 0
        violation = 0
        duplicate = 0
        settingsChanges = 0
        initialWindow = calm.initialWindow
        windowDelay = 0
        if seed / 8 % 16 == 3 { slowReading = 0.5 }
        self.gateway = gateway
    }
}

extension SimulationPlan {
    /// Time of silence after which a notification counts as accepted: a sixth of the request
    /// timeout.
    var silence: UInt64 { requestTimeout / 6 }
}
