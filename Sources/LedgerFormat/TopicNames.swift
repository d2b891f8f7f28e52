/// Topics that a reader found, numbered from 1 in order of discovery. Number 0 means no topic.
public struct TopicNames: Sendable {
    /// The texts by number; the first is empty.
    private var texts: [[UInt8]] = [[]]
    private var numbers: [[UInt8]: UInt16] = [:]

    /// Limit on the number of topics. A run has at most 256.
    static let limit = Int(UInt16.max)

    /// Creates names without topics.
    init() {}

    /// Number of topics.
    public var count: Int { texts.count - 1 }

    /// Text of a topic; empty for number 0.
    public subscript(_ number: UInt16) -> [UInt8] { texts[Int(number)] }

    /// Returns the number of a topic, and assigns one to a new topic; nil beyond the limit.
    mutating func number(of text: [UInt8]) -> UInt16? {
        if let number = numbers[text] { return number }
        guard count < Self.limit else { return nil }
        let number = UInt16(texts.count)
        texts.append(text)
        numbers[text] = number
        assert(texts.count == numbers.count + 1, "each topic has one number")
        return number
    }
}
