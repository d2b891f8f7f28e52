import Broadside
import BroadsideSupport

/// Provider tokens of the simulation: what the process' watch does with a signing key, and the rules that
/// it keeps. A token's value is its date, a second.
extension Simulation {
    /// Sets the clock so that the first process begins with a token of an age.
    ///
    /// - Parameter age: 300 s at least, and below 2,100 s: then another one is due.
    func setClock(tokenAge age: UInt64) {
        // The start of a window of 1,800 s.
        let date: UInt64 = 1_760_000_400
        wallStart = (date + age) * 1000 - clock / millisecond
    }

    /// The token with which a process begins, whatever the one before it used.
    var firstToken: UInt64 {
        // Told by other words than the engine's: five minutes into a window its token is due.
        let seconds = now.wallMilliseconds / 1000
        let window = seconds / 1800
        return (seconds % 1800 < 300 ? window - 1 : window) * 1800
    }

    /// A process uses another token: of this window or the one before, and 20 minutes after its last
    /// change at least.
    private func checkChange(_ issued: UInt64) {
        let seconds = now.wallMilliseconds / 1000
        if issued % 1800 != 0 || issued > seconds || issued + 3300 <= seconds {
            fail("the provider token \(issued) is made at \(seconds)")
        }
        if let changed = process.tokenChangedAt, seconds < changed + 1200 {
            fail("a provider token is made \(seconds - changed) s after the one before")
        }
        process.tokenChangedAt = seconds
        process.newestToken = issued
    }

    /// A token that is wanted is made a moment later, by another thread.
    func askForToken() {
        guard process.coordinator.wantsToken, !process.isTokenAsked else { return }
        process.isTokenAsked = true
        events.insert(
            .renewal(epoch: process.epoch), at: clock + random.skewedDelay(200 * millisecond))
    }

    func renewToken() {
        process.isTokenAsked = false
        trace.step(time: clock, kind: 8, 0)
        guard let issued = process.coordinator.renewToken(now) else { return }
        checkChange(issued)
        note { "a new provider token" }
        cover(.newToken)
        for reactor in process.reactors { wake(reactor, at: clock + random.delay(50_000)) }
    }
}
