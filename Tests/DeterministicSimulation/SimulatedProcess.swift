import Broadside
import BroadsideEngine
import BroadsideLists
import BroadsidePolicy
import BroadsideRows

/// An entry in a reactor's inbox, which the reactor reads when it wakes.
enum Delivery {
    case completion(ReactorCompletion)
    case bytes(link: Int, [UInt8])
}

/// One reactor of a process, and its pending submissions.
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
    /// Position up to which the segment is written. A write that was cut short counts once the rest
    /// is written.
    var writtenPosition: UInt64 = 0
    /// The same position before the last write ended.
    var writtenBefore: UInt64 = 0
    /// Reservations that are durable.
    var reservations = Simulation.Reservations()
    /// Number of bytes that the pending sync will make durable.
    var pendingSync: Int?
    /// Number of consecutive iterations without any result.
    var idleTurns = 0
    var countedRequests: UInt64 = 0
    var isDone = false
    /// Whether the reactor learned that a newer attempt has the ledger.
    var isSuperseded = false
    /// Time of the next check of its connections.
    var nextRoomLook: UInt64 = 0
    /// Number of failed look-ups that the reactor knows of. `hasAddresses` shows whether one
    /// succeeded.
    var failedResolutions = 0
    /// Time since when the reactor waits for a name server; nil if it does not.
    var lookingUpSince: UInt64?
    /// Time at which the reactor last received the result of a look-up that took a second or more.
    var slowLookupEnd: UInt64?
    var hasAddresses = false
    /// Number of reads of the list for which the reactor waits.
    var readsOut = 0
    /// Last time at which no request was possible, because there was no row or no provider token.
    var heldAt: UInt64 = 0
    /// Time up to which its connections' time is accounted for.
    var accountedAt: UInt64
    /// Whether there was an iteration since the last check after which no row could be sent.
    var lackedRows = false

    init(index: Int, machine: consuming TransparentReactor, now: UInt64) {
        self.index = index
        self.machine = machine
        accountedAt = now
    }
}

/// One process of the engine, from its start to its end or its death.
final class SimulatedProcess {
    let epoch: Int
    let faults: FaultPlan
    /// The faults that are still active: none after all faults have ended.
    var current: FaultPlan
    /// Time since when all faults have ended; nil if they have not.
    var calmSince: UInt64?
    let coordinator: RunCoordinator
    let reopens: ReopenedStates
    let list: ListSource
    /// State of each row in the ledger when the process began.
    let statesAtStart: [RowState]
    /// Rows that an earlier process sent, or may have sent, as the ledger says when the process
    /// began.
    let sentBefore: Set<Int>
    /// Rows that earlier passes of this process settled, and that it does not send again.
    let ownRows: Set<Int>
    var reactors: [SimulatedReactor] = []
    /// Rows that earlier processes reserved and whose bytes have changed since; nil if the list is
    /// unchanged.
    var changedRows: Range<UInt64>?
    /// Reactors that have not yet learned that a read of the list detected the change.
    var untoldChanges: [(reactor: Int, cause: StopCause)] = []
    /// Reactors that requested rows since then.
    var waitingReads: [(reactor: Int, rowLimit: Int)] = []
    var hasDied = false
    /// Its passes over the list; this process is one of them. nil if all rows are due at once.
    var passes: RunPasses?
    /// Whether it searches for rows before its wave is due, because it begins while an older
    /// process runs.
    var looksOnly = false
    /// Whether quiet hours have begun, which ends the process.
    var hasBecomeQuiet = false
    /// Whether a new provider token is being made.
    var isTokenAsked = false
    /// Number of requests by the virtual time at which they were made, for checks of the rate.
    var requestTimes: [(time: UInt64, count: Int)] = []
    let startedAt: UInt64
    /// If the rate rises: seconds of sending before this process, as the simulation counts them.
    var rampBefore = 0.0
    /// The rate in force from a time on; nil: no limit.
    var rates: [(time: UInt64, rate: UInt64?)] = []
    /// Time since when the process is paused; nil if it is not.
    var pausedSince: UInt64?
    /// Whether it was ever paused, for how long in total, and when this last changed.
    var hasPaused = false
    var pausedTime: UInt64 = 0
    var continuedAt: UInt64 = 0
    /// Whether any notification was accepted.
    var hasAccepted = false
    /// Number of events since it began.
    var steps = 0
    /// Time at which it was told to stop; nil before.
    var stoppedAt: UInt64?
    /// Time of the second stop signal, after which it waits for no response; nil before.
    var stoppedAtOnceAt: UInt64?
    /// Addresses that surely count as losing requests, with the time since when they do.
    var lossySince: [Int: UInt64] = [:]
    /// Faults that still wait for their condition.
    var ambushes: [Ambush]
    /// The trouble that the trace has reported.
    var toldTrouble: String?
    /// Message about the end of a connection for which the server is to blame.
    var excusedTrouble: String?
    /// Rows that reactors received while the canary was pending, without rows that are not sent.
    var canaryRows: [Int] = []
    /// The last row that was considered for the canary, including rows without a token.
    var lastCanaryRow = 0
    /// Number of settled rows when a row was last settled, and the step at that time.
    var progress: (settled: UInt64, step: Int) = (0, 0)
    /// Number of settled rows when a row was last settled, and the time at which this was seen.
    var steady: (settled: UInt64, time: UInt64) = (0, 0)
    /// Whether a reactor received the end of the list.
    var hasListEnded = false
    /// Time since when no reactor has a row, and no more rows will come; nil if there are rows.
    var emptySince: UInt64?
    /// Times at which connections were begun, except each reactor's first ones.
    var reconnectTimes: [UInt64] = []
    /// Pauses that addresses surely have, with their number of consecutive failures. All reactors
    /// share them.
    var pauses: [Int: AddressPause] = [:]
    /// First row of the next chunk in the list's order, and whether chunks came out of order.
    var nextChunkRow: UInt64 = 0
    var hasDisorder = false
    /// What it learned about its servers.
    var facts = ServerFacts()
    /// Index of its first link.
    var firstLink = 0
    /// For each address that may be used: number of connections to other addresses since the last
    /// one to it.
    var neglected: [Int: Int] = [:]
    /// Last time at which there was a connection, or no row waited for one.
    var triedAt: UInt64
    /// Last time at which the credentials were read again.
    var reloadedAt: UInt64 = 0
    /// Time until which the process is or was last frozen; 0: never.
    var frozenUntil: UInt64 = 0
    /// Time at which a newer attempt claimed its ledger; nil if none did.
    var claimedAt: UInt64?
    /// Number of the event at which the ledger is claimed; 0: by time, or never.
    var claimStep = 0
    /// Its segments as the newer attempt read them.
    var segmentsAtClaim: [SimulatedSegment] = []
    /// Time from which it receives what arrived while it was frozen. Its first iterations are
    /// earlier.
    var takesFrom: UInt64 = 0
    /// Time since when it is known that no address can be reached; nil if this is not known.
    var unreachableSince: UInt64?
    /// Last time at which it received TooManyProviderTokenUpdates. It makes no new token for 20
    /// minutes.
    var updatesRefusedAt: UInt64?
    /// Responses that it received: the time, and whether it surely took them for what they are.
    var responses: [(copy: Int, time: UInt64, isSure: Bool)] = []
    /// Time at which each request was made, in order.
    var requestsMadeAt: [UInt64] = []
    /// Date of its newest provider token, seconds since 1970.
    var newestToken: UInt64 = 0
    /// Time at which it last changed its provider token; nil: it uses its first one.
    var tokenChangedAt: UInt64?
    /// Counts with which its canary began.
    var canaryBefore = (answered: 0, refused: 0)
    /// Number of connections begun, by reactor.
    var connectionsBegun: [Int: Int] = [:]

    init(
        epoch: Int, faults: FaultPlan, coordinator: RunCoordinator, reopens: ReopenedStates,
        list: ListSource, rowsAtStart: [LedgerRow], ownRows: Set<Int>, startedAt: UInt64
    ) {
        self.epoch = epoch
        self.faults = faults
        current = faults
        ambushes = faults.ambushes
        self.coordinator = coordinator
        self.reopens = reopens
        self.list = list
        statesAtStart = rowsAtStart.map(\.state)
        sentBefore = Set(
            rowsAtStart.indices.filter {
                let row = rowsAtStart[$0]
                return row.state == .inDoubt || row.state == .unknown || row.attempts > 0
            })
        self.ownRows = ownRows
        self.startedAt = startedAt
        triedAt = startedAt
    }

    var isOver: Bool { hasDied || reactors.allSatisfy(\.isDone) }

    /// Whether the process sends a settled row again.
    func reopens(row: Int) -> Bool {
        reopens.contains(statesAtStart[row]) && !ownRows.contains(row)
    }

    /// Whether rows in doubt may be sent again, whatever `--on-lost` is.
    var reopensUnknown: Bool { reopens.contains(RowState.unknown) }
}
