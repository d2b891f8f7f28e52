import Broadside
import BroadsideSupport

/// What the simulation knows of how long a connection has to be left alone whose requests are refused without
/// being processed: 1 ms, doubled to 1 s with each round of refusals, over with any response on it.
///
/// Successors take over what their address had. Where the simulation can't tell what the client made of a
/// response, or which of several connections spoke last, there are two bounds.
struct RefusalModel {
    /// Rounds so far, and nothing is sent before: at least, and at most.
    private(set) var roundsLeast = 0
    private(set) var roundsMost = 0
    private(set) var least: UInt64 = 0
    private(set) var most: UInt64 = 0

    private static func pause(_ rounds: Int) -> UInt64 {
        min(millisecond << UInt64(min(rounds, 10)), second)
    }

    /// A request was refused.
    mutating func refused(_ now: UInt64) {
        if most <= now {
            least = now + Self.pause(roundsLeast)
            most = now + Self.pause(roundsMost)
            roundsLeast += 1
            roundsMost += 1
        } else if least <= now {
            // Within a pause of which it is not known whether it is over.
            least = now
            most = max(most, now + Self.pause(roundsMost))
            roundsMost += 1
        }
    }

    /// Perhaps a request was refused.
    mutating func mayBeRefused(_ now: UInt64) {
        let before = self
        refused(now)
        least = min(before.least, least)
        roundsLeast = before.roundsLeast
    }

    /// A request got a response, or perhaps did.
    mutating func responded(isSure: Bool) {
        roundsLeast = 0
        least = 0
        guard isSure else { return }
        roundsMost = 0
        most = 0
    }

    /// What a successor can rely on: another connection may have spoken since.
    static func inherited(_ now: UInt64) -> RefusalModel {
        var model = RefusalModel()
        model.most = now + second
        model.roundsMost = 10
        return model
    }
}
