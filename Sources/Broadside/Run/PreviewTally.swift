import BroadsideAPNs
import BroadsideObservability
import BroadsidePayloads
import BroadsideRows
import BroadsideSupport

/// Counts the rows that a preview reads, to say why it shows fewer requests than were asked for.
struct PreviewTally {
    private var read: UInt64 = 0
    private var shown: UInt64 = 0
    /// Rows that would be sent, but are not shown, because enough requests of the same kind are
    /// shown.
    private var others: UInt64 = 0
    private var skipped: [SkipReason: UInt64] = [:]
    private var invalid: [Invalid: UInt64] = [:]

    private struct Invalid: Hashable {
        var reason: Reason
        var option: String?
    }

    mutating func noteShown() { (read, shown) = (read + 1, shown + 1) }

    mutating func noteOther() { (read, others) = (read + 1, others + 1) }

    mutating func note(_ reason: SkipReason) {
        read += 1
        skipped[reason, default: 0] += 1
    }

    /// - Parameter option: Option that uses the row's invalid value; nil: the row has no valid
    ///   token.
    mutating func note(_ reason: Reason, option: String? = nil) {
        read += 1
        invalid[Invalid(reason: reason, option: option), default: 0] += 1
    }

    /// Lines about the rows that were read.
    ///
    /// - Parameters:
    ///   - isWhole: Whether all rows of the run were read.
    ///   - options: Options of the run.
    func lines(isWhole: Bool, _ options: SendOptions) -> [String] {
        var selection: [String] = []
        if options.limit != nil { selection.append("--limit") }
        if options.shard != nil { selection.append("--shard") }
        let suffix = selection.isEmpty ? "" : " (\(selection.joined(separator: ", ")))"
        let rows = read == 1 ? "1 row" : "\(isWhole ? "all" : "the first") \(grouped(read)) rows"
        var lines = [
            "read         \(rows)\(suffix): "
                + (shown == 0 ? "none is shown" : "\(grouped(shown)) shown")
        ]
        var left: [String] = []
        for reason in SkipReason.allCases {
            guard let count = skipped[reason] else { continue }
            left.append("\(grouped(count)) \(reason.reason.text) (\(reason.cause(options)))")
        }
        let sorted = invalid.sorted {
            ($0.key.reason.text, $0.key.option ?? "") < ($1.key.reason.text, $1.key.option ?? "")
        }
        for (kind, count) in sorted {
            let cause = kind.option.map { "invalid, \($0)" } ?? "invalid"
            left.append("\(grouped(count)) \(kind.reason.text) (\(cause))")
        }
        if others > 0 { left.append("\(grouped(others)) more with the same payload") }
        for (index, text) in left.enumerated() {
            lines.append((index == 0 ? "not shown    " : "             ") + text)
        }
        return lines
    }
}

extension SkipReason {
    /// Cause of skipped rows, for a message: an option, or an earlier night.
    fileprivate func cause(_ options: SendOptions) -> String {
        self == .deadToken && options.skipDead == nil ? "an earlier night" : option
    }
}

extension PayloadRenderer.Culprit.Use {
    /// Option that uses the row's value.
    var option: String {
        switch self {
        case .text, .integer, .badge, .interruptionLevel, .boolean, .payloadOver: "--payload"
        case .collapseID: "--collapse-id"
        case .topic, .topicBeyondLimit: "--topic"
        case .payloadName: "--payload-by"
        }
    }
}
