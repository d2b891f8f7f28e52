/// SipHash-2-4 of one 64-bit word: a keyed hash that reveals nothing about the word without the key
/// (Aumasson and Bernstein, "SipHash: a fast short-input PRF", 2012).
public struct KeyedHash: Sendable {
    private let key: (UInt64, UInt64)

    /// - Parameter key: 128 random bits.
    public init(key: (UInt64, UInt64)) { self.key = key }

    /// Returns the hash of a word's eight bytes, the lowest first.
    public func hash(_ word: UInt64) -> UInt64 {
        var state = State(key)
        state.take(word)
        // The last word has the number of bytes in its top byte.
        state.take(8 << 56)
        return state.end()
    }

    private struct State {
        private var v0, v1, v2, v3: UInt64

        init(_ key: (UInt64, UInt64)) {
            v0 = key.0 ^ 0x736f_6d65_7073_6575
            v1 = key.1 ^ 0x646f_7261_6e64_6f6d
            v2 = key.0 ^ 0x6c79_6765_6e65_7261
            v3 = key.1 ^ 0x7465_6462_7974_6573
        }

        mutating func take(_ word: UInt64) {
            v3 ^= word
            mix(rounds: 2)
            v0 ^= word
        }

        mutating func end() -> UInt64 {
            v2 ^= 0xff
            mix(rounds: 4)
            return v0 ^ v1 ^ v2 ^ v3
        }

        private mutating func mix(rounds: Int) {
            for _ in 0..<rounds {
                v0 &+= v1
                v2 &+= v3
                v1 = Self.rotated(v1, 13) ^ v0
                v3 = Self.rotated(v3, 16) ^ v2
                v0 = Self.rotated(v0, 32)
                v2 &+= v1
                v0 &+= v3
                v1 = Self.rotated(v1, 17) ^ v2
                v3 = Self.rotated(v3, 21) ^ v0
                v2 = Self.rotated(v2, 32)
            }
        }

        private static func rotated(_ word: UInt64, _ count: UInt64) -> UInt64 {
            word << count | word >> (64 - count)
        }
    }
}
