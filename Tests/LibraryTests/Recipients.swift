import Broadside
import BroadsideSimulatorTesting
import Foundation

extension SimulatedAPNs {
    func file(_ name: String) -> URL { directory.appending(path: name) }

    /// A campaign to tokens that count up from 0, each with its number as a field.
    func campaign(rows: Int) -> Campaign {
        Campaign(
            topic: topic, credential: credential,
            payload: .json(Data(#"{"aps":{"alert":"Number {{number}}"}}"#.utf8)),
            tokens: .rows(Recipients(count: rows)))
    }
}

/// A token for a number; their digits are spread evenly.
func token(_ number: Int) -> String {
    let digits = String(UInt64(number + 1) &* 0x9e37_79b9_7f4a_7c15, radix: 16)
    return String(repeating: String(repeating: "0", count: 16 - digits.count) + digits, count: 4)
}

/// Recipients with tokens that count up.
struct Recipients: AsyncSequence, Sendable {
    var count: Int
    /// Number of the recipient in whose place the sequence fails.
    var failsAt: Int?

    struct Broken: Error {}

    struct Iterator: AsyncIteratorProtocol {
        var recipients: Recipients
        var next = 0

        mutating func next() async throws -> Recipient? {
            if next == recipients.failsAt { throw Broken() }
            guard next < recipients.count else { return nil }
            defer { next += 1 }
            return Recipient(token(next), fields: ["number": "\(next)"])
        }
    }

    func makeAsyncIterator() -> Iterator { Iterator(recipients: self) }
}
