internal import BroadsideSupport

/// Rows that were not accepted, by reason: counted alike by who sends and by who reads a ledger.
public struct ReasonCounts: Sendable, Hashable {
    /// By the stable code of the reason; 0: none was given.
    private(set) var codes: [UInt8: UInt64] = [:]
    /// By the text of a reason without a code, as much of it as a ledger keeps.
    public private(set) var texts: [String: UInt64] = [:]

    /// Different texts that are told apart; the others are counted as `otherTexts`.
    public static let textsLimit = 256
    /// What further texts are counted as.
    public static let otherTexts = "(others)"
    /// How a row without a reason is counted.
    public static let noReason = "(no reason)"

    /// No rows.
    public init() {}

    /// Counts rows under a reason that has a code.
    public mutating func add(code: UInt8, count: UInt64 = 1) {
        codes[code, default: 0] += count
    }

    /// Counts rows under a reason in the server's own words.
    public mutating func add(text bytes: RawSpan) {
        let count = min(bytes.byteCount, LedgerFormat.reasonTextByteCountMax)
        guard count > 0 else { return add(code: 0) }
        let kept = bytes.extracting(first: count)
        add(
            text: String(
                decoding: [UInt8](kept), as: UTF8.self),
            count: 1)
    }

    /// Counts rows under a text, as much of it as is kept.
    public mutating func add(text: String, count: UInt64) {
        let isKept = texts[text] != nil || texts.count < Self.textsLimit
        texts[isKept ? text : Self.otherTexts, default: 0] += count
        assert(texts.count <= Self.textsLimit + 1, "texts that are not kept are counted together")
    }

    /// Adds what another counted.
    public mutating func add(_ other: ReasonCounts) {
        // The sum with nothing is the other itself, whichever texts it had room for.
        if codes.isEmpty, texts.isEmpty {
            self = other
            return
        }
        codes.merge(other.codes, uniquingKeysWith: +)
        for (text, count) in other.texts.sorted(by: { $0.key < $1.key }) {
            add(text: text, count: count)
        }
    }

    /// Reason -> rows, as summaries have it.
    ///
    /// - Parameter name: the text of a code other than 0.
    public func named(_ name: (UInt8) -> String) -> [String: UInt64] {
        var named = texts
        for (code, count) in codes {
            named[code == 0 ? Self.noReason : name(code), default: 0] += count
        }
        return named
    }
}
