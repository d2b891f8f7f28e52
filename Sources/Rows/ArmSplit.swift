internal import BroadsidePrimitives
internal import BroadsideSupport

/// A split of a campaign's devices into arms (`--split`, `--split-salt`).
///
/// Each device has a position from 0 to 9,999. It is computed from the SHA-256 hash of the salt, a
/// colon and the token's lower-case digits. The first eight bytes of the hash are a big-endian
/// number, which is multiplied by 10,000 and divided by 2^64. The arms take consecutive ranges of
/// positions in their order, 100 positions for each percent.
public struct ArmSplit: Codable, Hashable, Sendable {
    /// A share of the devices.
    public struct Arm: Codable, Hashable, Sendable {
        /// Name: 1 to 32 bytes of `a-z0-9_-`.
        public let name: String
        /// The share in hundredths of a percent, at least 1.
        public let hundredths: Int
    }

    /// Error in a text that should be a split.
    public struct Problem: Error {
        /// Description of the error. In a message it follows the option's name.
        public let message: String
    }

    /// Arms in order; their shares add up to 100 percent. An arm's number is its index plus 1.
    public let arms: [Arm]
    /// The text that is hashed before each token.
    public let salt: String

    /// Name of the arm to which nothing is sent.
    public static let holdoutName = "holdout"
    /// Maximum number of arms, including the holdout: the ledger has four bits for the number of an
    /// arm.
    public static let armLimit = 15
    /// Maximum number of bytes of a name.
    public static let nameByteLimit = 32
    /// Maximum number of bytes of a salt.
    public static let saltByteLimit = 200
    /// Number of positions: one per hundredth of a percent.
    static let positionCount = 10_000

    /// Parses `ARM=PERCENT,...`. Devices beyond the sum of the percentages are the holdout.
    public init(_ text: String, salt: String) throws(Problem) {
        var arms: [Arm] = []
        for part in text.split(separator: ",", omittingEmptySubsequences: false) {
            let arm = try Self.arm(part)
            guard !arms.contains(where: { $0.name == arm.name }) else {
                throw Problem(message: "'\(text)' has arm \(arm.name) twice: give it once")
            }
            arms.append(arm)
        }
        guard arms.contains(where: { $0.name != Self.holdoutName }) else {
            throw Problem(message: "'\(text)' sends to no device: write it like a=90")
        }
        let sum = arms.reduce(0) { $0 + $1.hundredths }
        let namesHoldout = arms.contains { $0.name == Self.holdoutName }
        guard sum <= Self.positionCount, sum == Self.positionCount || !namesHoldout else {
            throw Problem(
                message: "'\(text)' adds up to \(Self.percentText(sum)) percent: "
                    + (namesHoldout
                        ? "if holdout is named, the sum must be 100"
                        : "the sum must be at most 100")
            )
        }
        if sum < Self.positionCount {
            arms.append(Arm(name: Self.holdoutName, hundredths: Self.positionCount - sum))
        }
        guard arms.count <= Self.armLimit else {
            throw Problem(
                message: "'\(text)' has \(arms.count) arms including the holdout, but at most "
                    + "\(Self.armLimit) are possible")
        }
        self.arms = arms
        self.salt = salt
        assert(isPossible, "a split that was parsed can be used")
    }

    private static func arm(_ text: Substring) throws(Problem) -> Arm {
        let parts = text.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
        guard parts.count == 2, isName(parts[0]), let hundredths = hundredths(parts[1]) else {
            throw Problem(
                message: "'\(text)' is not ARM=PERCENT: write it like a=45; the name has 1 to "
                    + "\(nameByteLimit) characters (a-z, 0-9, _ and -), and the percentage up to two decimals"
            )
        }
        guard (1...positionCount).contains(hundredths) else {
            throw Problem(
                message: "'\(text)' must be above 0 and at most 100 percent: correct the share")
        }
        return Arm(name: String(parts[0]), hundredths: hundredths)
    }

    /// Whether a text may be the name of an arm.
    public static func isName(_ text: some StringProtocol) -> Bool {
        (1...nameByteLimit).contains(text.utf8.count)
            && text.utf8.allSatisfy { byte in
                switch byte {
                case 0x61...0x7A, 0x30...0x39, 0x5F, 0x2D: true
                default: false
                }
            }
    }

    /// Whether a text may be a salt.
    public static func isSalt(_ text: String) -> Bool {
        (1...saltByteLimit).contains(text.utf8.count)
    }

    /// Parses a number with up to two decimals, and returns it in hundredths; nil for any other
    /// text.
    private static func hundredths(_ text: Substring) -> Int? {
        let parts = text.split(separator: ".", omittingEmptySubsequences: false)
        guard let whole = parts.first, (1...3).contains(whole.utf8.count), parts.count <= 2,
            parts.allSatisfy({ $0.utf8.allSatisfy { (0x30...0x39).contains($0) } }),
            let percent = Int(whole)
        else { return nil }
        guard parts.count == 2 else { return percent * 100 }
        guard (1...2).contains(parts[1].utf8.count), let decimals = Int(parts[1]) else {
            return nil
        }
        return percent * 100 + (parts[1].utf8.count == 1 ? decimals * 10 : decimals)
    }

    /// Formats a share in percent, such as `45`, `0.5` or `33.33`.
    public static func percentText(_ hundredths: Int) -> String {
        let (percent, rest) = (hundredths / 100, hundredths % 100)
        if rest == 0 { return "\(percent)" }
        return rest % 10 == 0
            ? "\(percent).\(rest / 10)" : "\(percent).\(rest < 10 ? "0" : "")\(rest)"
    }

    /// The split as an option's value, with the holdout.
    public var text: String {
        arms.map { "\($0.name)=\(Self.percentText($0.hundredths))" }.joined(separator: ",")
    }

    /// Whether this version can create such a split. If not, the manifest with the split is
    /// damaged.
    public var isPossible: Bool {
        (1...Self.armLimit).contains(arms.count)
            && arms.allSatisfy {
                Self.isName($0.name) && (1...Self.positionCount).contains($0.hundredths)
            }
            && arms.reduce(0) { $0 + $1.hundredths } == Self.positionCount
            && Self.isSalt(salt)
    }

    /// Number of the holdout among the arms, from 1; nil if the split has no holdout.
    public var holdout: UInt8? {
        arms.firstIndex { $0.name == Self.holdoutName }.map { UInt8($0 + 1) }
    }

    /// Number of the arm with this name, from 1; nil if there is none.
    public func number(of name: some StringProtocol) -> UInt8? {
        arms.firstIndex { $0.name == name }.map { UInt8($0 + 1) }
    }

    /// Names of the arms, in the order of the arms' numbers.
    public var names: [String] { arms.map(\.name) }
}

/// Finds the arm of a device according to a split. Does not allocate.
public struct ArmChooser: Sendable {
    /// State of the hash after the salt and the colon.
    private let salted: ShortSHA256
    /// For each arm, the end of its range of positions; 65,535 for arms that do not exist.
    private var ends = InlineArray<15, UInt16>(repeating: .max)

    /// - Parameter split: A split for which `isPossible` is true.
    public init(_ split: ArmSplit) {
        precondition(split.isPossible, "a split was checked when it was read")
        var hash = ShortSHA256()
        for byte in split.salt.utf8 { hash.append(byte) }
        hash.append(UInt8(ascii: ":"))
        salted = hash
        var end = 0
        for (index, arm) in split.arms.enumerated() {
            end += arm.hundredths
            ends[index] = UInt16(end)
        }
        assert(end == ArmSplit.positionCount, "each position has an arm")
    }

    /// Number of a device's arm, from 1.
    ///
    /// - Parameter digits: Hexadecimal digits of the token, in any letter case.
    public func arm(of digits: RawSpan) -> UInt8 {
        let position = position(of: digits)
        var index = 0
        while position >= ends[index] { index += 1 }
        return UInt8(index + 1)
    }

    /// A device's position, from 0 to 9,999.
    public func position(of digits: RawSpan) -> UInt16 {
        var hash = salted
        for offset in 0..<digits.byteCount {
            let byte = digits.byte(at: offset)
            hash.append((0x41...0x46).contains(byte) ? byte | 0x20 : byte)
        }
        let product = hash.first64Bits.multipliedFullWidth(by: UInt64(ArmSplit.positionCount))
        return UInt16(product.high)
    }
}
