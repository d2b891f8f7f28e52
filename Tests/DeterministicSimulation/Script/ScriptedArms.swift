import BroadsidePayloads
import BroadsideRows

/// Arms of a seed, and the arm of each row. They are computed with a separate SHA-256, not with the
/// engine's.
struct ScriptedArms {
    let split: ArmSplit
    /// Number of each row's arm, from 1; 0 for a row without a token.
    let armOfRow: [UInt8]
    /// Number of the arm to which nothing is sent; nil if there is none.
    let holdout: UInt8?

    /// - Returns: nil if the campaign has no arms.
    init?(seed: UInt64, list: SimulatedList) {
        var random = SimulationRandom(seed: seed ^ 0x6172_6d73_0000_0001)
        guard random.chance(0.4) else { return nil }
        let shares = random.pick([[50, 50], [40, 30], [5, 80, 10], [20, 20, 20, 20, 20], [1]])
        let text = shares.enumerated().map { "\(Self.names[$0])=\($1)" }.joined(separator: ",")
        let salt = "night-\(seed % 7)"
        guard let split = try? ArmSplit(text, salt: salt) else {
            preconditionFailure("\(text) is a split")
        }
        self.split = split
        // The share that the arms leave is the holdout.
        var ends = shares.reduce(into: [0]) { $0.append($0.last! + $1 * 100) }.dropFirst()
        let rest = ends.last! < 10_000
        if rest { ends.append(10_000) }
        holdout = rest ? UInt8(shares.count + 1) : nil
        armOfRow = list.tokens.map { token in
            guard let token else { return 0 }
            let digest = SimulatedDigest.first64Bits(Array("\(salt):".utf8) + token)
            let position = Int(digest.multipliedFullWidth(by: 10_000).high)
            return UInt8(ends.count { $0 <= position } + 1)
        }
    }

    private static let names = ["a", "b", "c-2", "d_d", "e"]

    /// Key that only the payload of this arm has.
    static func key(_ arm: UInt8) -> String {
        arm == 0 ? "x" : ["a", "b", "c", "d", "e", "f"][Int(arm) - 1]
    }

    /// The arms for the engine. Each has the template with its number less 1.
    var payloads: ArmPayloads {
        ArmPayloads(
            split: split,
            own: split.arms.indices.map { index in
                var own = ArmPayloads.Own()
                own.template = index
                return own
            })
    }
}

/// SHA-256 of whole messages, implemented from its definition (FIPS 180-4).
enum SimulatedDigest {
    /// The first 64 bits of a digest.
    static func first64Bits(_ message: [UInt8]) -> UInt64 {
        var padded = message + [0x80]
        while padded.count % 64 != 56 { padded.append(0) }
        let bits = UInt64(message.count) * 8
        padded += (0..<8).reversed().map { UInt8(truncatingIfNeeded: bits >> (8 * UInt64($0))) }
        var hash = roots(of: primes.prefix(8), power: 2)
        for start in stride(from: 0, to: padded.count, by: 64) {
            var words = (0..<16).map { word in
                (0..<4).reduce(UInt32(0)) { $0 << 8 | UInt32(padded[start + 4 * word + $1]) }
            }
            for index in 16..<64 {
                let (x, y) = (words[index - 15], words[index - 2])
                let s0 = turned(x, 7) ^ turned(x, 18) ^ x >> 3
                let s1 = turned(y, 17) ^ turned(y, 19) ^ y >> 10
                words.append(words[index - 16] &+ s0 &+ words[index - 7] &+ s1)
            }
            var v = hash
            for index in 0..<64 {
                let s1 = turned(v[4], 6) ^ turned(v[4], 11) ^ turned(v[4], 25)
                let choice = (v[4] & v[5]) ^ (~v[4] & v[6])
                let first = v[7] &+ s1 &+ choice &+ constants[index] &+ words[index]
                let s0 = turned(v[0], 2) ^ turned(v[0], 13) ^ turned(v[0], 22)
                let majority = (v[0] & v[1]) ^ (v[0] & v[2]) ^ (v[1] & v[2])
                v.removeLast()
                v[3] &+= first
                v.insert(first &+ s0 &+ majority, at: 0)
            }
            for index in 0..<8 { hash[index] &+= v[index] }
        }
        return UInt64(hash[0]) << 32 | UInt64(hash[1])
    }

    private static func turned(_ word: UInt32, _ count: UInt32) -> UInt32 {
        word >> count | word << (32 - count)
    }

    private static let primes: [UInt64] = Array(
        (2..<312).filter { number in !(2..<number).contains { number % $0 == 0 } }.prefix(64))

    private static let constants = roots(of: primes[...], power: 3)

    /// The first 32 bits of the fractional parts of roots, by bisection.
    private static func roots(of numbers: ArraySlice<UInt64>, power: Int) -> [UInt32] {
        numbers.map { number in
            // The root times 2^32 is below 2^37 for these numbers.
            var (low, high) = (UInt64(1) << 32, UInt64(1) << 37)
            while high - low > 1 {
                let middle = (low + high) / 2
                if isAtMost(middle, number, power) { low = middle } else { high = middle }
            }
            return UInt32(truncatingIfNeeded: low)
        }
    }

    /// Whether `root` / 2^32, to this power, is at most the number.
    private static func isAtMost(_ root: UInt64, _ number: UInt64, _ power: Int) -> Bool {
        let square = UInt128(root) * UInt128(root)
        if power == 2 { return square <= UInt128(number) << 64 }
        // The cube is divided by 2^16. The comparison is exact except for the last bits, which no
        // prime needs.
        return (square >> 16) * UInt128(root) <= UInt128(number) << 80
    }
}
