internal import BroadsideAPNs
internal import BroadsidePrimitives
internal import BroadsideSupport

/// Selection of the devices that are offline, or of those that save power. A token can have an
/// explicit setting. For any other token, the condition is a pure function of the token, so that a
/// test can compute it independently.
///
///     h = splitmix64(first 8 bytes of the token, big-endian, padded with zeros, XOR seed)
///     offline:       splitmix64(h) / 2^64 < share
///     saves power:   splitmix64(splitmix64(h)) / 2^64 < share
struct DeviceCondition: Sendable {
    enum Kind: Int, Sendable {
        case offline = 1
        case savingPower = 2

        /// The command-line option that selects the devices.
        var option: String { self == .offline ? "offline" : "saving-power" }
    }

    /// Maximum number of devices with an explicit setting.
    static let explicitLimit = 1_000_000

    private let kind: Kind
    private let share: Double
    private let seed: UInt64
    private var explicit: [[UInt8]: Bool] = [:]

    init(_ kind: Kind, share: Double = 0, seed: UInt64 = 0) {
        assert((0...1).contains(share), "a share of the devices")
        self.kind = kind
        self.share = share
        self.seed = seed
    }

    /// Parses an option's value: a share of all devices from 0 to 1, or a file with one token per
    /// line. nil selects no device.
    init(_ kind: Kind, option: String?, seed: UInt64) throws(SimulatorError) {
        if let option, let share = Double(option), (0...1).contains(share) {
            self.init(kind, share: share, seed: seed)
        } else {
            self.init(kind, seed: seed)
            if let option { try read(option) }
        }
    }

    /// Returns whether the condition applies to a token in lower-case hexadecimal digits.
    func holds(_ token: [UInt8]) -> Bool {
        if !explicit.isEmpty, let explicit = explicit[token] { return explicit }
        guard share > 0,
            let head = TokenOutcome.head(ofDigits: token.span.rawBytes)
        else { return false }
        var hash = splitmix64(head ^ seed)
        for _ in 0..<kind.rawValue { hash = splitmix64(hash) }
        return Double(hash) * 0x1p-64 < share
    }

    /// Sets the condition for a token; returns false if too many tokens already have an explicit
    /// setting.
    mutating func set(_ token: [UInt8], _ holds: Bool) -> Bool {
        guard explicit.count < Self.explicitLimit || explicit[token] != nil else { return false }
        explicit[token] = holds
        return true
    }

    /// Returns a token's digits in lower case, or nil if they are not a valid token.
    static func normalized(_ digits: [UInt8]) -> [UInt8]? {
        guard TokenOutcome.head(ofDigits: digits.span.rawBytes) != nil
        else {
            return nil
        }
        // Decimal digits already have this bit set.
        return digits.map { $0 | 0x20 }
    }

    /// Reads a file with one token per line, and sets the condition for each token.
    mutating func read(_ path: String) throws(SimulatorError) {
        let text = try PrivateFile.read(path, option: kind.option, limit: 256 << 20)
        var line = 0
        for digits in text.split(separator: 0x0a, omittingEmptySubsequences: false) {
            line += 1
            var digits = digits
            if digits.last == 0x0d { digits = digits.dropLast() }
            if digits.isEmpty { continue }
            guard let token = Self.normalized(Array(digits)) else {
                throw SimulatorError(
                    "--\(kind.option) \(path), line \(line): not a device token: write one token per line",
                    exitCode: 2)
            }
            guard set(token, true) else {
                throw SimulatorError(
                    "--\(kind.option) \(path): more than \(Self.explicitLimit) tokens: remove some, "
                        + "or give a share of all devices, such as 0.1, instead of the file",
                    exitCode: 2)
            }
        }
    }
}
