import BroadsideAPNs
import BroadsideLedgerFormat
import BroadsideSupport

/// One campaign among many: a row of the page about nights, and a point of its charts.
package struct Night {
    /// What a ledger says of its campaign, over all its runs.
    package struct Figures {
        var outcome: Summary.Outcome
        /// Of the list; nil if nobody has read it to its end.
        var rows: UInt64?
        var counts = RowCounts()
        /// nil if `rows` is.
        var remaining: UInt64?
        /// Rows that APNs rejected with 410.
        var dead: UInt64 = 0
        /// The pauses between runs are left out; nil if no run says it.
        var runningSeconds: Double?
        /// How old the list was at the first start; nil if the ledger does not say it.
        var listAgeSeconds: Double?
    }

    /// What became of the ledger when it was read.
    package enum Content {
        case figures(Figures)
        /// Why it could not be read.
        case unreadable(String)
    }

    /// The ledger's directory.
    var path: String
    /// What people call the campaign, or its number; of an unreadable one the directory's name.
    var title: String
    /// The first start, milliseconds since 1970; nil if the manifest can't be read.
    var startedAtMilliseconds: UInt64?
    /// Where a page about this campaign alone may be, the likeliest place first.
    var pagePaths: [String] = []
    /// That page, as seen from this one: a reference that needs no escape in HTML; nil: none.
    var link: String?
    var content: Content

    var figures: Figures? {
        guard case .figures(let figures) = content else { return nil }
        return figures
    }

    /// The last millisecond of the year 9999: a manifest that was edited may say anything.
    static let latestStart: UInt64 = 253_402_300_799_999

    /// The reasons that come with status 410: the device token is not active any more.
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

    /// Dead tokens among settled rows, 0 to 1; nil if there are none.
    var deadShare: Double? {
        counts.settled > 0 ? Double(dead) / Double(counts.settled) : nil
    }

    /// Notifications per second of running time; nil if nothing was sent, or no run says how long.
    var speed: Double? {
        guard let runningSeconds, runningSeconds > 0, counts.sent > 0 else { return nil }
        return Double(counts.sent) / runningSeconds
    }
}
