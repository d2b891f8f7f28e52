/// Approximate set of tokens, with one hash per token. It contains all inserted tokens, and reports
/// a few others as contained.
struct TokenFilter {
    private var words: [UInt64]

    /// - Parameter bitCount: A power of two; 0 for an empty filter.
    init(bitCount: Int) {
        assert(bitCount & (bitCount - 1) == 0, "a mask chooses the place")
        words = Array(repeating: 0, count: bitCount / 64)
    }

    private func place(_ hash: UInt64) -> (word: Int, bit: UInt64) {
        let place = hash & UInt64(words.count * 64 - 1)
        return (Int(place >> 6), 1 << (place & 63))
    }

    /// - Parameter hash: One of a token's hashes. Callers must use the same one for all tokens.
    mutating func insert(_ hash: UInt64) {
        guard !words.isEmpty else { return }
        let (word, bit) = place(hash)
        words[word] |= bit
    }

    func mayContain(_ hash: UInt64) -> Bool {
        guard !words.isEmpty else { return false }
        let (word, bit) = place(hash)
        return words[word] & bit != 0
    }
}
