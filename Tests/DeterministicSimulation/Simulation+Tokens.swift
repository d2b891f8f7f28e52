import Broadside
import BroadsideSupport

/// Provider tokens of the simulation: how the process makes them with a signing key, and the rules
/// for them. A token's value is its date, in seconds.
extension Simulation {
    /// Sets the clock so that the first process begins with a token of the given age.
    ///
    /// - Parameter age: At least 300 s and less than 2,100 s. At 2,100 s, the next token is due.
    func setClock(tokenAge age: UInt64) {
        // The start of a half-hour.
        let date: UInt64 = 1_760_000_400
        wallStart = (date + age) * 1000 - clock / millisecond
    }

    /// Date of the token with which a process begins, whichever token the previous process used.
    var firstToken: UInt64 {
        // Computed without the engine's code: a token is used from five minutes after the start of
        // its half-hour.
        let seconds = now.wallMilliseconds / 1000
        let window = seconds / 1800
        return (seconds % 1800 < 300 ? window - 1 : window) * 1800
    }

    /// Checks the date of a process's new token. It must be of this half-hour or the one before,
    /// and come at least 20 minutes after the last change.
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

    /// Schedules the making of a token if one is wanted. Another thread makes it a moment later.
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
