import Broadside
import BroadsideSupport

/// What the responses that a process was told say of its servers: what it has to keep to from then on.
struct ServerFacts {
    /// An address, as far as responses spoke of it.
    struct Address {
        /// True once a response spoke of trouble and none of a new connection said otherwise since; nil:
        /// perhaps.
        var isOutage: Bool? = false
        /// Since when it surely is one.
        var since: UInt64 = 0
        /// It is left alone until then, at least and at most.
        var least: UInt64 = 0
        var most: UInt64 = 0
        /// When a response last moved `least`: what another reactor does at that moment may not know it.
        var toldAt: UInt64 = 0
        /// What a pause has doubled by, at most.
        var failuresMost = 0

        /// No pause is longer than what it doubles to.
        mutating func mayPause(_ now: UInt64) {
            most = max(most, now + min(second << UInt64(min(failuresMost, 6)), 60 * second))
            failuresMost += 1
        }
    }

    /// A pause that a row's response asked for.
    struct RowPause {
        var until: UInt64
        var why: String
    }

    var addresses: [Int: Address] = [:]
    var rows: [Int: RowPause] = [:]
    /// Rows with a response that calls the provider token invalid.
    var invalidTokens: Set<Int> = []
    /// What reactors keep of refusals for the next connection to an address.
    var refusals: [Int: RefusalModel] = [:]
    /// Connections in a row that broke HTTP/2 without an accepted row in between, at least and at most,
    /// and when they did.
    var brokenLeast = 0
    private(set) var brokenMost = 0
    /// Which series of such connections it is: an accepted row ends one.
    private(set) var series = 0
    var brokenTimesLeast: [UInt64] = []
    var brokenTimesMost: [UInt64] = []
    /// Connections in a row that called a young provider token expired, at least and at most.
    var expiredLeast: Set<Int> = []
    var expiredMost: Set<Int> = []

    /// Whether the run has to end because of its servers.
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

    /// What was noted before the end of a series may count behind it.
    mutating func mayBreakLater() {
        brokenMost += 1
        if brokenMost >= 3 { mayBeBroken = true }
    }

    /// A row was accepted for sure.
    mutating func endSeries() {
        brokenMost = 0
        series += 1
    }

    mutating func surelyBroke(_ now: UInt64) {
        brokenLeast += 1
        brokenTimesLeast.append(now)
    }
}
