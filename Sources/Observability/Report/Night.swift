import BroadsideAPNs
import BroadsideLedgerFormat
import BroadsideSupport

/// One campaign on the page about nights. It is a row in the page's table and a point in the page's
/// charts.
package struct Night {
    /// The figures of a campaign over all its runs, from its ledger.
    package struct Figures {
        var outcome: Summary.Outcome
        /// Number of rows of the list; nil if no run read the list to its end.
        var rows: UInt64?
        var counts = RowCounts()
        /// Number of rows that are not settled; nil if `rows` is nil.
        var remaining: UInt64?
        /// Rows that APNs rejected with 410.
        var dead: UInt64 = 0
        /// Time during which runs were active, without the gaps between them; nil if no run
        /// recorded it.
        var runningSeconds: Double?
        /// Whether `--limit` may have ended the latest run before the end of the list; nil if no run
        /// read to the limit or to the list's end.
        var isLimited: Bool? = false
        /// Age of the list at the first start; nil if the ledger does not record it.
        var listAgeSeconds: Double?
    }

    /// Result of reading the ledger.
    package enum Content {
        case figures(Figures)
        /// Reason why the ledger could not be read.
        case unreadable(String)
        /// Path of another copy of this ledger, whose rows are counted.
        case copy(of: String)
    }

    /// Directory of the ledger.
    var path: String
    /// Name or ID of the campaign; the directory's name for an unreadable ledger.
    var title: String
    /// Time of the first start, milliseconds since 1970; nil if the manifest can't be read.
    var startedAtMilliseconds: UInt64?
    /// Possible paths of this campaign's own page, the most likely first.
    var pagePaths: [String] = []
    /// Relative link to this campaign's own page, safe in HTML without escaping; nil if there is
    /// none.
    var link: String?
    var content: Content
    /// For each ledger that was merged into this one, its campaign's number and its part, as one
    /// text. Empty if this ledger is not merged.
    var mergedKeys: Set<String> = []
    /// The campaign's number and part, as one text; nil for a merged or unreadable ledger.
    var key: String?
    /// Time of the latest start, milliseconds since 1970; 0 if there was none.
    var lastStartedAtMilliseconds: UInt64 = 0
    /// Warning that the ledger is an old copy; nil if it is not known to be one.
    var warning: String?
    /// First recommended step if the night ended early; nil for any other night.
    var next: StopAdvice.Step?

    var figures: Figures? {
        guard case .figures(let figures) = content else { return nil }
        return figures
    }

    var isCopy: Bool {
        if case .copy = content { return true }
        return false
    }

    /// Records that another night is counted, and this copy of it is not.
    mutating func markAsCopy(of other: Night) {
        content = .copy(of: other.path)
        (next, pagePaths) = (nil, [])
    }

    /// Latest valid start: the last millisecond of the year 9999. An edited manifest can contain a
    /// later time.
    static let latestStart: UInt64 = 253_402_300_799_999

    /// Reasons of responses with status 410: the device token is no longer active.
    static let deadReasons = [Reason.unregistered, .expiredToken].map(\.text)
}

extension Night.Figures {
    init(_ summary: Summary) {
        outcome = summary.outcome
        rows = summary.rows
        counts = summary.counts
        remaining = summary.remaining
        dead = Night.deadReasons.reduce(0) { $0 + (summary.reasons[$1] ?? 0) }
    }

    /// Share of dead tokens among the rows that were sent, 0 to 1; nil if no row was sent.
    var deadShare: Double? {
        assert(dead <= counts.sent, "the row of a dead token was sent")
        return counts.sent > 0 ? Double(dead) / Double(counts.sent) : nil
    }

    /// Notifications per second of running time; nil if nothing was sent, or no run recorded its
    /// running time.
    var speed: Double? {
        guard let runningSeconds, runningSeconds > 0, counts.sent > 0 else { return nil }
        return Double(counts.sent) / runningSeconds
    }
}
