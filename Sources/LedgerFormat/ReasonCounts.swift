internal import BroadsideSupport

/// Rows that were not accepted, by reason. Used by runs and by readers of a ledger.
public struct ReasonCounts: Sendable, Hashable {
    /// Number of rows by the stable code of the reason. Code 0 stands for rows without a reason.
    private(set) var codes: [UInt8: UInt64] = [:]
    /// Number of rows by the text of a reason without a code. A text is cut off at the length that
    /// a ledger keeps.
    public private(set) var texts: [String: UInt64] = [:]

    /// Limit on the number of different texts. Any further text is counted as `otherTexts`.
    public static let textsLimit = 256
    /// Name under which texts beyond `textsLimit` are counted.
    public static let otherTexts = "(others)"
    /// Name for rows without a reason.
    public static let noReason = "(no reason)"

    /// Creates empty counts.
    public init() {}

    /// Counts rows under a reason that has a code.
    public mutating func add(code: UInt8, count: UInt64 = 1) {
        codes[code, default: 0] += count
    }

    /// Counts a row under the text of a reason without a code.
    public mutating func add(text bytes: RawSpan) {
        let count = min(bytes.byteCount, LedgerFormat.reasonTextByteCountMax)
        guard count > 0 else { return add(code: 0) }
        let kept = bytes.extracting(first: count)
        add(
            text: String(
                decoding: [UInt8](kept), as: UTF8.self),
            count: 1)
    }

    /// Counts rows under a text that a ledger has kept.
    public mutating func add(text: String, count: UInt64) {
        let isKept = texts[text] != nil || texts.count < Self.textsLimit
        texts[isKept ? text : Self.otherTexts, default: 0] += count
        assert(texts.count <= Self.textsLimit + 1, "texts that are not kept are counted together")
    }

    /// Adds other counts.
    public mutating func add(_ other: ReasonCounts) {
        // If these counts are empty, the sum has all texts of the other counts.
        if codes.isEmpty, texts.isEmpty {
            self = other
            return
        }
        codes.merge(other.codes, uniquingKeysWith: +)
        for (text, count) in other.texts.sorted(by: { $0.key < $1.key }) {
            add(text: text, count: count)
        }
    }

    /// Returns the number of rows for each reason, by the reason's text, for summaries.
    ///
    /// - Parameter name: Returns the text of a code other than 0.
    public func named(_ name: (UInt8) -> String) -> [String: UInt64] {
        var named = texts
        for (code, count) in codes {
            named[code == 0 ? Self.noReason : name(code), default: 0] += count
        }
        return named
    }
}
