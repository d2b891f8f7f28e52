public import BroadsideAPNs
internal import BroadsidePrimitives
internal import BroadsideSupport
internal import Synchronization

/// The topics of a campaign whose rows name them, numbered in the order in which they are met: all
/// reactors of a run know a topic by the same number.
public final class RowTopics: Sendable {
    /// The most topics of a run.
    public static let limit = 256
    /// The most bytes of a topic.
    static let byteLimit = 255

    /// What follows from a row's topic.
    enum Finding {
        case number(UInt8)
        /// No topic for this push type.
        case malformed
        /// One more than `limit`.
        case tooMany
    }

    private struct State {
        var texts: [[UInt8]] = []
        var numbers: [[UInt8]: UInt8] = [:]
    }

    private let pushType: PushType
    private let state = Mutex(State())

    /// - Parameter pushType: Says which endings a topic needs, or must not have.
    public init(pushType: PushType) {
        self.pushType = pushType
    }

    /// The number of a topic, which gets one if it is new.
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
            guard state.texts.count < Self.limit else { return .tooMany }
            let number = UInt8(state.texts.count)
            state.texts.append(topic)
            state.numbers[topic] = number
            assert(state.texts.count == state.numbers.count, "each topic has one number")
            return .number(number)
        }
    }

    /// A topic that was found.
    public func text(_ number: UInt8) -> [UInt8] {
        state.withLock { $0.texts[Int(number)] }
    }

    /// All that were found, by their numbers.
    public var names: [String] {
        state.withLock { $0.texts.map { String(decoding: $0, as: UTF8.self) } }
    }
}

/// One renderer's own memory of the topics, so that a row of a known one takes no lock and allocates
/// nothing.
struct TopicFinder: ~Copyable {
    private let topics: RowTopics?
    /// A table with open addressing: a topic's number and 1; 0: free.
    private var slots: FixedBuffer<UInt16>
    /// The topics by their numbers, `RowTopics.limit` places of `place` bytes, and how many are set.
    private var bytes: FixedBuffer<UInt8>
    private var counts: FixedBuffer<UInt8>

    private static var place: Int { 256 }
    private static var slotCount: Int { 4 * RowTopics.limit }

    /// - Parameter topics: nil: rows name none.
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
        slots[slot] = UInt16(number) + 1
        counts[Int(number)] = UInt8(text.count)
        for (offset, byte) in text.enumerated() {
            bytes[Int(number) * Self.place + offset] = byte
        }
        return finding
    }
}
