internal import BroadsideAPNs
import BroadsideSupport
internal import Synchronization

/// The reason in a response.
struct StatedReason {
    /// The reason; nil if there is none, or one that this version does not know.
    var known: Reason?
    /// Number of a reason that this version does not know, in `UnknownReasons`; 0: none.
    var unknown: UInt8
}

/// Numbers for the reasons in a run's responses that this version does not know. Reactors hand
/// over the number, because a text for each response would be an allocation for each response.
final class UnknownReasons: Sendable {
    private struct Entry: Sendable {
        let bytes: [UInt8]
        let text: String
    }

    private let entries = Mutex<[Entry]>([])

    /// Limit on the number of different texts. All further texts share a number without a text.
    static let limit = 64
    /// Limit on bytes of a text. The rest of a longer text is ignored.
    static let textByteCountMax = 64

    /// Number of different texts.
    var count: Int { entries.withLock { $0.count } }

    /// Returns the number of a text, from 1.
    func number(of text: RawSpan) -> UInt8 {
        precondition(!text.isEmpty, "a reason has a text")
        let text = text.extracting(first: Self.textByteCountMax)
        return entries.withLock { entries in
            for index in entries.indices {
                let known = entries[index].bytes
                if text.holdsSame(as: known.rawSpan) { return UInt8(index + 1) }
            }
            guard entries.count < Self.limit else { return UInt8(Self.limit + 1) }
            let bytes = [UInt8](text)
            entries.append(Entry(bytes: bytes, text: String(decoding: bytes, as: UTF8.self)))
            return UInt8(entries.count)
        }
    }

    /// Returns the text of a number; nil for 0, which stands for no unknown reason, and for texts
    /// beyond the limit.
    func text(_ number: UInt8) -> String? {
        guard (1...UInt8(Self.limit)).contains(number) else { return nil }
        return entries.withLock { $0[Int(number) - 1].text }
    }

    /// Returns the text of a reason, escaped for display; nil if there is none.
    func shown(_ reason: StatedReason) -> String? {
        reason.known?.text ?? text(reason.unknown).map { printable($0) }
    }
}
