/// Which rows a campaign skips because of earlier ledgers (`--skip-dead`, `--cap`): a part of what makes it
/// the same campaign.
public struct EarlierRules: Codable, Hashable, Sendable {
    /// Directories of ledgers that report dead tokens, absolute and sorted; nil: none.
    public var skipDead: [String]?
    /// For how long such a report counts, in milliseconds; nil: the column below decides.
    public var deadForMilliseconds: UInt64?
    /// The column that says when a token was registered; nil: none.
    public var registeredColumn: String?
    /// So many acceptances within the period are the most; nil: any number.
    public var capCount: Int?
    /// That period, before the first start, in milliseconds.
    public var capMilliseconds: UInt64?
    /// Directories of ledgers in which acceptances are counted, absolute and sorted; nil: none.
    public var history: [String]?

    /// No rule.
    public init() {}

    /// Names in words the first thing in which another value differs; nil if none does.
    ///
    /// - Parameter other: what is asked for now; `self` is what the run began with.
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
