import Broadside
import BroadsideSupport

/// What a process must conclude about its servers from the responses that it received.
struct ServerFacts {
    /// Conclusions about an address.
    struct Address {
        /// True after a response reported trouble, until a new connection got a good response; nil:
        /// possibly.
        var isOutage: Bool? = false
        /// Time since when the address surely has an outage.
        var since: UInt64 = 0
        /// Time until which the address must be left alone: lower and upper bound.
        var least: UInt64 = 0
        var most: UInt64 = 0
        /// Time at which a response last changed `least`. At that moment, another reactor may not
        /// know it yet.
        var toldAt: UInt64 = 0
        /// Upper bound of the number of failures by which a pause was doubled.
        var failuresMost = 0

        /// Records a possible pause, which is at most as long as its doubling allows.
        mutating func mayPause(_ now: UInt64) {
            most = max(most, now + min(second << UInt64(min(failuresMost, 6)), 60 * second))
            failuresMost += 1
        }
    }

    /// A pause that the response to a row requires.
    struct RowPause {
        var until: UInt64
        var why: String
    }

    var addresses: [Int: Address] = [:]
    var rows: [Int: RowPause] = [:]
    /// Rows with a server error.
    var troubledRows: Set<Int> = []
    /// Rows with a response that reports the provider token as invalid.
    var invalidTokens: Set<Int> = []
    /// What reactors remember about refusals, for the next connection to an address.
    var refusals: [Int: RefusalModel] = [:]
    /// Number of consecutive connections that broke HTTP/2 without an accepted row in between, and
    /// the times at which they did. Each has a lower and an upper bound.
    var brokenLeast = 0
    private(set) var brokenMost = 0
    /// Number of the current series of such connections. An accepted row ends a series.
    private(set) var series = 0
    var brokenTimesLeast: [UInt64] = []
    var brokenTimesMost: [UInt64] = []
    /// Consecutive connections that reported a young provider token as expired: lower and upper
    /// bound.
    var expiredLeast: Set<Int> = []
    var expiredMost: Set<Int> = []

    /// Reason why the run must end because of its servers; nil if there is none.
    var mustStop: String? {
        if brokenLeast >= 3 { return "three connections in a row broke HTTP/2" }
        if Self.isTenWithinMinute(brokenTimesLeast) { return "ten connections broke HTTP/2" }
        if expiredLeast.count >= 3 { return "three connections call the provider token expired" }
        return nil
    }

    /// Whether the run may have ended because of connections that broke HTTP/2, or called a provider
    /// token expired.
    var mayBeBroken = false
    var mayBeExpired = false

    private static func isTenWithinMinute(_ times: [UInt64]) -> Bool {
        times.count >= 10 && times[times.count - 1] - times[times.count - 10] <= 60 * second
    }

    mutating func mayBreak(_ now: UInt64) {
        brokenMost += 1
        brokenTimesMost.append(now)
        if brokenMost >= 3 || Self.isTenWithinMinute(brokenTimesMost) { mayBeBroken = true }
    }

    /// Records a violation that was noted before a series ended, and that may count in the next
    /// series.
    mutating func mayBreakLater() {
        brokenMost += 1
        if brokenMost >= 3 { mayBeBroken = true }
    }

    /// Records that a row was surely accepted.
    mutating func endSeries() {
        brokenMost = 0
        series += 1
    }

    mutating func surelyBroke(_ now: UInt64) {
        brokenLeast += 1
        brokenTimesLeast.append(now)
    }
}
