import APNs
import Broadside
import Support

/// Provider tokens of the simulation: what the process' watch does with a signing key, and the rules that
/// it keeps. A token's value is the second in which it was made.
extension Simulation {
    /// The token with which a process begins: the kept one while it is young, else a new one.
    func takeKeptToken() -> UInt64 {
        let seconds = now.wallMilliseconds / 1000
        guard let kept = keptToken else {
            // The first process finds one that is so old.
            let issued = seconds - tokenAge
            keptToken = issued
            return issued
        }
        if seconds < kept + ProviderTokenAge.reusableSeconds { return kept }
        return makeToken(seconds)
    }

    private func makeToken(_ seconds: UInt64) -> UInt64 {
        // "Refresh your token no more than once every 20 minutes", whatever dies in between.
        if let kept = keptToken, seconds < kept + ProviderTokenAge.renewableSeconds {
            fail("a provider token is made \(seconds - kept) s after the one before")
        }
        keptToken = seconds
        return seconds
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
        let isRenewed = process.coordinator.renewToken(now) { _, issuedAt in
            // One that came too early is taken again once it is not: it is kept already.
            if issuedAt != keptToken { _ = makeToken(issuedAt) }
        }
        guard isRenewed else { return }
        note { "a new provider token" }
        cover(.newToken)
        for reactor in process.reactors { wake(reactor, at: clock + random.delay(50_000)) }
    }
}
