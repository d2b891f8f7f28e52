import Broadside
import BroadsideSupport

/// The simulation's estimate of how long a connection must pause after its requests are refused
/// without being processed: 1 ms, doubled with each round of refusals up to 1 s. Any response on
/// the connection ends the pause.
///
/// A new connection takes over the pause of its address. The simulation can't always tell how the
/// client took a response, or which of several connections got the latest one. The pause therefore
/// has a lower and an upper bound.
struct RefusalModel {
    /// Number of rounds so far, and time before which nothing is sent. Each has a lower and an
    /// upper bound.
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
            // It is not known whether the previous pause is over.
            least = now
            most = max(most, now + Self.pause(roundsMost))
            roundsMost += 1
        }
    }

    /// Records that a request was possibly refused.
    mutating func mayBeRefused(_ now: UInt64) {
        let before = self
        refused(now)
        least = min(before.least, least)
        roundsLeast = before.roundsLeast
    }

    /// Records that a request got a response, surely or possibly.
    mutating func responded(isSure: Bool) {
        roundsLeast = 0
        least = 0
        guard isSure else { return }
        roundsMost = 0
        most = 0
    }

    /// Bounds for a new connection. Another connection may have got a response since.
    static func inherited(_ now: UInt64) -> RefusalModel {
        var model = RefusalModel()
        model.most = now + second
        model.roundsMost = 10
        return model
    }
}
