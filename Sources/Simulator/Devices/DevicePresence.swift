internal import APNs

/// Which devices are online: what was said of each, else a pure function of the token, so that
/// anybody can compute it.
///
///     h = splitmix64(first 8 octets of the token, big-endian, padded with zeros, XOR seed)
///     u = splitmix64(h) / 2^64
///     u < share   offline
struct DevicePresence: Sendable {
    /// Devices of which something may be said.
    static let maximumSaid = 1_000_000

    private let share: Double
    private let seed: UInt64
    private var said: [[UInt8]: Bool] = [:]

    init(share: Double, seed: UInt64) {
        self.share = share
        self.seed = seed
    }

    /// Whether the device of a token, in lower-case digits, is online.
    func isOnline(_ token: [UInt8]) -> Bool {
        if !said.isEmpty, let said = said[token] { return said }
        guard share > 0, let head = unsafe token.withUnsafeBytes({ unsafe TokenFate.head(ofDigits: $0) })
        else { return true }
        let u = Double(TokenFate.splitmix64(TokenFate.splitmix64(head ^ seed))) * 0x1p-64
        return u >= share
    }

    /// Says so; false where too much was said already.
    mutating func say(_ token: [UInt8], isOnline: Bool) -> Bool {
        guard said.count < Self.maximumSaid || said[token] != nil else { return false }
        said[token] = isOnline
        return true
    }

    /// A token's digits in lower case; nil where they spell none.
    static func normalized(_ digits: [UInt8]) -> [UInt8]? {
        guard unsafe digits.withUnsafeBytes({ unsafe TokenFate.head(ofDigits: $0) }) != nil else {
            return nil
        }
        // Figures have this bit already.
        return digits.map { $0 | 0x20 }
    }

    /// Takes a file's tokens, a line each, as offline.
    mutating func read(_ path: String) throws(SimulatorError) {
        let text = try PrivateFile.read(path, option: "--offline", limit: 256 << 20)
        var line = 0
        for digits in text.split(separator: 0x0a, omittingEmptySubsequences: false) {
            line += 1
            var digits = digits
            if digits.last == 0x0d { digits = digits.dropLast() }
            if digits.isEmpty { continue }
            guard let token = Self.normalized(Array(digits)) else {
                throw SimulatorError(
                    "--offline \(path), line \(line): no device token: write a token a line",
                    exitCode: 2)
            }
            guard say(token, isOnline: false) else {
                throw SimulatorError(
                    "--offline \(path): more than \(Self.maximumSaid) tokens: use a share",
                    exitCode: 2)
            }
        }
    }
}
