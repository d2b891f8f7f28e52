import BroadsideSupport

/// Topics of a segment's rows. A topic has two numbers: one that the caller chose, and one that is
/// valid only in the open block.
///
///     number   text                  in the open block
///     1        com.example.shop      2
///     2        com.example.news      1
///     3        com.example.mail      not yet
struct WrittenTopics {
    /// Text of each topic, at the index of its number minus 1; empty if the topic has no text yet.
    fileprivate var texts: [[UInt8]] = []
    /// Number of each topic in the open block; 0 before its first use there.
    fileprivate var inBlock: [UInt16] = []
    /// Number of topics in the open block.
    fileprivate var blockCount: UInt16 = 0
    /// Topic of the block's latest verdict; 0 if there is no verdict, or if it has no topic.
    fileprivate var current: UInt16 = 0

    /// Maximum number that a reactor chooses for a topic.
    fileprivate static let chosenLimit = 256

    /// Forgets the previous block's topics, so that each block can be read without earlier ones.
    mutating func beginBlock() {
        current = 0
        guard blockCount > 0 else { return }
        blockCount = 0
        for index in inBlock.indices { inBlock[index] = 0 }
    }
}

extension LedgerWriter {
    /// Whether a topic has a name. Without a name, no verdict with the topic can be written.
    ///
    /// - Parameter topic: Number of the topic, from 1, chosen by the caller.
    public func knows(topic: UInt16) -> Bool {
        topic > 0 && topic <= topics.texts.count && !topics.texts[Int(topic) - 1].isEmpty
    }

    /// Gives a topic its name. Numbers should be small: the memory grows with the largest number.
    ///
    /// - Parameters:
    ///   - topic: Number of the topic, from 1, which has no name yet.
    ///   - text: The name, 1 to 255 bytes.
    public mutating func name(topic: UInt16, _ text: [UInt8]) {
        precondition(topic > 0 && !knows(topic: topic), "a topic has one name")
        precondition(!text.isEmpty && text.count <= LedgerFormat.topicByteCountMax)
        while topics.texts.count < topic {
            topics.texts.append([])
            topics.inBlock.append(0)
        }
        topics.texts[Int(topic) - 1] = text
    }

    /// Returns the number of a topic for verdicts that are recorded again. The numbers of these
    /// topics follow those that a run's reactors choose.
    ///
    /// - Parameter text: Text of the topic; empty if there is none, which is number 0.
    mutating func number(ofKept text: [UInt8]) -> UInt16 {
        guard !text.isEmpty else { return 0 }
        let known = topics.texts.dropFirst(WrittenTopics.chosenLimit)
        if let index = known.firstIndex(of: text) { return UInt16(index + 1) }
        let number = UInt16(max(topics.texts.count, WrittenTopics.chosenLimit) + 1)
        name(topic: number, text)
        return number
    }

    /// Ensures that the open block has room for a verdict. If the block's previous verdict has a
    /// different topic, a topic record is added first. The topic record and the verdict are in the
    /// same block, so that a kill or damage leaves both or neither.
    ///
    /// - Returns: The verdict's time, in milliseconds after the clock.
    @inline(__always)
    mutating func makeRoom(slots: Int, topic: UInt16, _ nowMilliseconds: UInt64) -> UInt64 {
        if topic == 0, topics.current == 0 { return makeRoom(slots: slots, nowMilliseconds) }
        return makeRoomForBoth(slots: slots, topic: topic, nowMilliseconds)
    }

    @inline(never)
    private mutating func makeRoomForBoth(
        slots: Int, topic: UInt16, _ nowMilliseconds: UInt64
    ) -> UInt64 {
        let isOther = topic != topics.current
        let delta = makeRoom(
            slots: isOther ? slots + TopicWord.slotCountMax : slots, nowMilliseconds)
        // A new block has no topic.
        if topic != topics.current { append(topic: topic) }
        return delta
    }

    private mutating func append(topic: UInt16) {
        assert(topic != topics.current, "a topic is recorded where it changes")
        topics.current = topic
        append(RecordKind.topic.rawValue << 60)
        guard topic > 0 else { return append(TopicWord(number: 0, textCount: 0).bits) }
        precondition(knows(topic: topic), "a topic has a name")
        let index = Int(topic) - 1
        guard topics.inBlock[index] == 0 else {
            return append(TopicWord(number: topics.inBlock[index], textCount: 0).bits)
        }
        topics.blockCount += 1
        topics.inBlock[index] = topics.blockCount
        let text = topics.texts[index]
        let word = TopicWord(number: topics.blockCount, textCount: text.count)
        append(word.bits)
        var packer = BytePacker()
        push(text.rawSpan, count: text.count, &packer)
        for _ in text.count..<(word.slotCount - 1) * 16 { push(0, &packer) }
    }
}
