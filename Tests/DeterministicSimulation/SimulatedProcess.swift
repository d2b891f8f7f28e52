import Broadside
import BroadsideEngine
import BroadsideLists
import BroadsidePolicy
import BroadsideRows

/// What lies in a reactor's inbox until it wakes.
enum Delivery {
    case completion(ReactorCompletion)
    case bytes(link: Int, [UInt8])
}

/// One reactor of a process, with what of its submissions is under way.
final class SimulatedReactor {
    struct PendingWrite {
        var bytes: UnsafeRawBufferPointer
        var copy: [UInt8]
        var offset: Int
    }

    let index: Int
    var machine: TransparentReactor
    var inbox: [(at: UInt64, Delivery)] = []
    /// The link in each slot.
    var linkOfSlot: [Int: Int] = [:]
    var turnTicket = 0
    var turnAt: UInt64 = .max
    var pendingWrite: PendingWrite?
    /// All up to here is written: a write that was cut off counts once the rest of it is.
    var writtenPosition: UInt64 = 0
    /// The same before the last write came to its end.
    var writtenBefore: UInt64 = 0
    /// What of it is safe.
    var reservations = Simulation.Reservations()
    /// What the sync under way will make safe.
    var pendingSync: Int?
    /// Wakes in a row that brought nothing.
    var idleTurns = 0
    var countedRequests: UInt64 = 0
    var isDone = false
    /// It was told that a newer attempt has the ledger.
    var isSuperseded = false
    /// When its connections are looked at next.
    var nextRoomLook: UInt64 = 0
    /// Look-ups that it was told failed, and whether one did not.
    var failedResolutions = 0
    /// Since when it waits for a name server; nil: it does not.
    var lookingUpSince: UInt64?
    /// When it was told last what a look-up found that took a second or more.
    var slowLookupEnd: UInt64?
    var hasAddresses = false
    /// Reads of the list that it waits for.
    var readsOut = 0
    /// When no request could be made last, for want of a row or of a provider token.
    var heldAt: UInt64 = 0
    /// Up to when its connections' time is accounted for.
    var accountedAt: UInt64
    /// Since the last look there was a turn after which no row could go out.
    var lackedRows = false

    init(index: Int, machine: consuming TransparentReactor, now: UInt64) {
        self.index = index
        self.machine = machine
        accountedAt = now
    }
}

/// One life of the engine: from its start to its end, or to its death.
final class SimulatedProcess {
    let epoch: Int
    let faults: FaultPlan
    /// What of the faults is left: nothing once all is well.
    var current: FaultPlan
    /// Since when all is well; nil where it is not.
    var calmSince: UInt64?
    let coordinator: RunCoordinator
    let reopens: ReopenedStates
    let list: ListSource
    /// What the ledger said of each row when the process began.
    let statesAtStart: [RowState]
    var reactors: [SimulatedReactor] = []
    /// Rows that earlier processes reserved, and whose bytes are others now; nil: the list is as it was.
    var changedRows: Range<UInt64>?
    /// Reactors that do not know yet that reading the list found that out.
    var untoldChanges: [(reactor: Int, cause: StopCause)] = []
    /// Reactors that asked for rows meanwhile.
    var waitingReads: [(reactor: Int, rowLimit: Int)] = []
    var hasDied = false
    /// Its passes, of which it is one; nil: all rows are due at once.
    var passes: RunPasses?
    /// Whether it looks for rows before its wave is due, because it begins while an older one runs.
    var looksOnly = false
    /// Whether quiet hours have begun, and end it.
    var hasBecomeQuiet = false
    /// A provider token is on its way.
    var isTokenAsked = false
    /// Requests by the virtual instant at which they were made, for the rate.
    var requestTimes: [(time: UInt64, count: Int)] = []
    let startedAt: UInt64
    /// Seconds of sending before it, where the rate rises: as the judge counts them.
    var rampBefore = 0.0
    /// The rate in force from an instant on; nil: none.
    var rates: [(time: UInt64, rate: UInt64?)] = []
    /// Since when it is paused; nil: it is not.
    var pausedSince: UInt64?
    /// Whether it ever was, for how long in all, and when that changed last.
    var hasPaused = false
    var pausedTime: UInt64 = 0
    var continuedAt: UInt64 = 0
    /// Whether any notification was accepted.
    var hasAccepted = false
    /// Events since it began.
    var steps = 0
    /// When its word to stop was given; nil before.
    var stoppedAt: UInt64?
    /// When the second word to stop was given, which waits for no response; nil before.
    var stoppedAtOnceAt: UInt64?
    /// Addresses that surely count as losing requests, and since when.
    var lossySince: [Int: UInt64] = [:]
    /// What still waits for its victim.
    var ambushes: [Ambush]
    /// The trouble that the trace has told of.
    var toldTrouble: String?
    /// The end of a connection for which its server is to blame.
    var excusedTrouble: String?
    /// Rows that were handed out while the canary was pending, those left out that are not sent.
    var canaryRows: [Int] = []
    /// The last of all rows that were looked at for the canary, those that are not tokens included.
    var lastCanaryRow = 0
    /// Rows that were settled when something was settled last, and the step at that time.
    var progress: (settled: UInt64, step: Int) = (0, 0)
    /// Rows that were settled when something was settled last, and when that was seen.
    var steady: (settled: UInt64, time: UInt64) = (0, 0)
    /// A reactor was told that the list is over.
    var hasListEnded = false
    /// Since when no reactor has a row, and none will come; nil: there are some.
    var emptySince: UInt64?
    /// When connections were begun beyond each reactor's first ones.
    var reconnectTimes: [UInt64] = []
    /// Pauses that addresses surely have, and for how many failures in a row: all reactors share them.
    var pauses: [Int: AddressPause] = [:]
    /// Where the chunk that came next would start in the list's order, and whether one came before
    /// another that lies before it.
    var nextChunkRow: UInt64 = 0
    var hasDisorder = false
    /// What it learned of its servers.
    var facts = ServerFacts()
    /// The first of its links.
    var firstLink = 0
    /// Connections that went elsewhere since one went to an address that may be used.
    var neglected: [Int: Int] = [:]
    /// When there was a connection last, or no row that waited for one.
    var triedAt: UInt64
    /// When the credentials were read again last.
    var reloadedAt: UInt64 = 0
    /// Until when it is stopped as a whole, or was last; 0: never.
    var frozenUntil: UInt64 = 0
    /// When a newer attempt claimed its ledger; nil: none did.
    var claimedAt: UInt64?
    /// It is claimed at this event of its life; 0: by time, or never.
    var claimStep = 0
    /// What that attempt read of its segments.
    var segmentsAtClaim: [SimulatedSegment] = []
    /// From when on it gets what came meanwhile: its first turns come before that.
    var takesFrom: UInt64 = 0
    /// Since when it is known that no address can be reached; nil: it is not.
    var unreachableSince: UInt64?
    /// When it was told last that its provider token came too early: for 20 minutes it makes none.
    var updatesRefusedAt: UInt64?
    /// Responses that it was told: when, and whether it surely took them for what they are.
    var responses: [(copy: Int, time: UInt64, isSure: Bool)] = []
    /// When each request was made, in order.
    var requestsMadeAt: [UInt64] = []
    /// The date of the newest provider token that it has made, seconds since 1970.
    var newestToken: UInt64 = 0
    /// When it changed its provider token last; nil: it uses its first one.
    var tokenChangedAt: UInt64?
    /// What its canary knew when it began.
    var canaryBefore = (answered: 0, refused: 0)
    /// Connections begun, by reactor.
    var connectionsBegun: [Int: Int] = [:]

    init(
        epoch: Int, faults: FaultPlan, coordinator: RunCoordinator, reopens: ReopenedStates,
        list: ListSource, statesAtStart: [RowState], startedAt: UInt64
    ) {
        self.epoch = epoch
        self.faults = faults
        current = faults
        ambushes = faults.ambushes
        self.coordinator = coordinator
        self.reopens = reopens
        self.list = list
        self.statesAtStart = statesAtStart
        self.startedAt = startedAt
        triedAt = startedAt
    }

    var isOver: Bool { hasDied || reactors.allSatisfy(\.isDone) }

    /// True where rows in doubt may be sent again whatever the policy says.
    var reopensUnknown: Bool { reopens.contains(RowState.unknown) }
}
