public import BroadsideAPNs
internal import BroadsidePrimitives
internal import BroadsideSupport
internal import Synchronization

/// Topics of a campaign whose rows name them. Topics are numbered as they are found; all reactors
/// of a run use the same numbers.
public final class RowTopics: Sendable {
    /// Maximum number of topics of a run.
    public static let limit = 256
    /// Maximum number of bytes of a topic.
    static let byteLimit = 255

    /// Result of the lookup of a row's topic.
    enum Finding {
        case number(UInt8)
        /// The text is not a topic for this push type.
        case malformed
        /// With this topic, the number of topics would exceed `limit`.
        case tooMany
        /// The text is a topic. It has no number, because it is only checked.
        case unnumbered
    }

    private struct State {
        var texts: [[UInt8]] = []
        var numbers: [[UInt8]: UInt8] = [:]
    }

    let pushType: PushType
    /// Whether a topic is malformed or not is all that matters. Topics beyond `limit` then have no
    /// number.
    private let onlyChecks: Bool
    private let state = Mutex(State())

    /// - Parameter pushType: Push type, which determines required and forbidden suffixes of topics.
    public convenience init(pushType: PushType) {
        self.init(pushType: pushType, onlyChecks: false)
    }

    init(pushType: PushType, onlyChecks: Bool) {
        self.pushType = pushType
        self.onlyChecks = onlyChecks
    }

    /// Returns the number of a topic, and assigns one to a new topic.
    func find(_ topic: [UInt8]) -> Finding {
        if let number = state.withLock({ $0.numbers[topic] }) { return .number(number) }
        let headers = NotificationHeaders(
            topic: String(decoding: topic, as: UTF8.self), pushType: pushType)
        let isWrong = headers.validate(credential: .providerToken).contains {
            $0.isError && $0.field == .topic
        }
        guard !isWrong, topic.count <= Self.byteLimit else { return .malformed }
        return state.withLock { state in
            if let number = state.numbers[topic] { return .number(number) }
            guard state.texts.count < Self.limit else {
                return onlyChecks ? .unnumbered : .tooMany
            }
            let number = UInt8(state.texts.count)
            state.texts.append(topic)
            state.numbers[topic] = number
            assert(state.texts.count == state.numbers.count, "each topic has one number")
            return .number(number)
        }
    }

    /// Text of a topic by its number.
    public func text(_ number: UInt8) -> [UInt8] {
        state.withLock { $0.texts[Int(number)] }
    }

    /// All topics found, in the order of their numbers.
    public var names: [String] {
        state.withLock { $0.texts.map { String(decoding: $0, as: UTF8.self) } }
    }
}

/// A renderer's own copy of the known topics. With it, a row with a known topic takes no lock and
/// does not allocate.
struct TopicFinder: ~Copyable {
    private let topics: RowTopics?
    /// Table with open addressing: a topic's number plus 1; 0: free.
    private var slots: FixedBuffer<UInt16>
    /// Topics by number, in `RowTopics.limit` entries of `place` bytes, and the length of each.
    private var bytes: FixedBuffer<UInt8>
    private var counts: FixedBuffer<UInt8>

    private static var place: Int { 256 }
    private static var slotCount: Int { 4 * RowTopics.limit }

    /// - Parameter topics: Topics of the campaign; nil if rows name no topics.
    init(_ topics: RowTopics?) {
        self.topics = topics
        let isNeeded = topics != nil
        slots = FixedBuffer(repeating: 0, count: isNeeded ? Self.slotCount : 0)
        bytes = FixedBuffer(repeating: 0, count: isNeeded ? RowTopics.limit * Self.place : 0)
        counts = FixedBuffer(repeating: 0, count: isNeeded ? RowTopics.limit : 0)
    }

    /// Looks up the text at the beginning of `bytes`.
    mutating func find(
        in bytes: borrowing FixedBuffer<UInt8>, count: Int
    ) -> RowTopics.Finding {
        find(bytes.bytes.extracting(0..<count))
    }

    private mutating func find(_ topic: RawSpan) -> RowTopics.Finding {
        var slot = Int(truncatingIfNeeded: MixingHash.hash(topic)) & (Self.slotCount - 1)
        while slots[slot] != 0 {
            let number = Int(slots[slot]) - 1
            if isEqual(number, topic) { return .number(UInt8(number)) }
            slot = (slot + 1) & (Self.slotCount - 1)
        }
        return findNew(topic, slot: slot)
    }

    private func isEqual(_ number: Int, _ topic: RawSpan) -> Bool {
        guard Int(counts[number]) == topic.byteCount else { return false }
        for offset in 0..<topic.byteCount
        where bytes[number * Self.place + offset] != topic.byte(at: offset) {
            return false
        }
        return true
    }

    @inline(never)
    private mutating func findNew(_ topic: RawSpan, slot: Int) -> RowTopics.Finding {
        guard let topics, topic.byteCount <= RowTopics.byteLimit else { return .malformed }
        let text = [UInt8](topic)
        let finding = topics.find(text)
        guard case .number(let number) = finding else { return finding }
        assert(slots[slot] == 0, "a topic is entered into a free slot")
        assert(counts[Int(number)] == 0, "a topic is entered once")
        slots[slot] = UInt16(number) + 1
        counts[Int(number)] = UInt8(text.count)
        for (offset, byte) in text.enumerated() {
            bytes[Int(number) * Self.place + offset] = byte
        }
        return finding
    }
}
