/// Rules that skip rows because of earlier ledgers (`--skip-dead`, `--cap`); part of the campaign's
/// identity.
public struct EarlierRules: Codable, Hashable, Sendable {
    /// Directories of ledgers that report dead tokens, absolute and sorted, or `ownFolder`; nil if
    /// there are none.
    public var skipDead: [String]?
    /// Period for which the report of a dead token counts, in milliseconds; nil if
    /// `registeredColumn` decides.
    public var deadForMilliseconds: UInt64?
    /// Column with a token's registration time; nil if there is none.
    public var registeredColumn: String?
    /// Maximum number of acceptances of a token within `capMilliseconds`; nil if unlimited.
    public var capCount: Int?
    /// Period to which `capCount` applies, in milliseconds. It ends at the campaign's first start.
    public var capMilliseconds: UInt64?
    /// Directories of ledgers in which acceptances are counted, absolute and sorted; nil if there
    /// are none.
    public var history: [String]?

    /// Stands for the folder that contains a night's ledger and the ledgers of earlier nights. The
    /// folder may be moved, so the path is not part of the identity.
    public static let ownFolder = "the night's own folder"

    /// Creates rules that skip no row.
    public init() {}

    /// Returns the rules with other names for their directories.
    public func renaming(
        skipDead dead: (String) -> String, history other: (String) -> String
    ) -> EarlierRules {
        var rules = self
        rules.skipDead = skipDead.map { Set($0.map(dead)).sorted() }
        rules.history = history.map { Set($0.map(other)).sorted() }
        return rules
    }

    /// Describes the first difference from other rules; nil if there is none.
    ///
    /// - Parameter other: The rules of the new run. `self` has the rules with which the campaign
    ///   started.
    func firstDifference(from other: EarlierRules) -> String? {
        func differ<Value: Equatable>(
            _ option: String, _ path: KeyPath<Self, Value>, _ words: (Value) -> String
        ) -> String? {
            let (own, others) = (self[keyPath: path], other[keyPath: path])
            return own == others
                ? nil : "--\(option) was \(words(own)), now it is \(words(others))"
        }
        func list(_ paths: [String]?) -> String { paths?.joined(separator: ", ") ?? "not set" }
        func time(_ milliseconds: UInt64?) -> String {
            milliseconds.map { "\($0 / 1000) s" } ?? "not set"
        }
        return differ("skip-dead", \.skipDead, list)
            ?? differ("registered-column", \.registeredColumn) { $0 ?? "not set" }
            ?? differ("dead-for", \.deadForMilliseconds, time)
            ?? differ("cap", \.capCount) { $0.map { "\($0) times" } ?? "not set" }
            ?? differ("cap", \.capMilliseconds, time)
            ?? differ("history", \.history, list)
    }
}
