import BroadsideSupport

/// Number of rows that a run has yet to send, as far as it is known when the plan is printed.
struct RowsAhead {
    /// Number of rows; an upper limit if `mayBeFewer`.
    let count: UInt64
    /// Whether fewer than `count` rows may be sent, because options may skip rows or earlier runs
    /// may have settled rows.
    let mayBeFewer: Bool
    /// Whether the list's rows were counted. If not, `count` is an estimate.
    let isExact: Bool
    /// Number of rows if the list has fewer rows than estimated; `count` if it is exact.
    let leastCount: UInt64
    /// Which rows the number counts.
    private let kind: Kind
    /// Time that earlier runs of the campaign spent sending, seconds.
    let sentSeconds: Double
    /// Time since the first start of the campaign, seconds; 0 if this is the first start.
    let elapsedSeconds: Double

    private enum Kind {
        /// All rows of the list.
        case listed
        /// Rows that earlier runs left.
        case left
        /// Rows that are neither skipped nor invalid.
        case sendable
    }

    private init(
        _ listed: UInt64, isExact: Bool, settled: UInt64 = 0, mayBeFewer: Bool, _ kind: Kind,
        sentSeconds: Double = 0, elapsedSeconds: Double = 0
    ) {
        // Later rows of a list may be longer than the rows from which its size was estimated.
        let least = isExact ? listed : listed - listed / 5
        count = listed - min(listed, settled)
        leastCount = least - min(least, settled)
        self.isExact = isExact
        self.mayBeFewer = mayBeFewer
        self.kind = kind
        self.sentSeconds = sentSeconds
        self.elapsedSeconds = elapsedSeconds
    }

    /// Creates the value if only the size of the list is known; nil if not even that is known.
    init?(_ size: ListSize, _ options: SendOptions) {
        guard let listed = size.count else { return nil }
        self.init(
            listed, isExact: size.isExact, mayBeFewer: options.skipsAny || options.resumes, .listed)
    }

    /// Creates the value for the rows that earlier runs left; nil if the list's size is unknown.
    ///
    /// - Parameter settled: Number of rows that this run does not send again.
    init?(
        leftOf size: ListSize, settled: UInt64, sentSeconds: Double, elapsedSeconds: Double,
        _ options: SendOptions
    ) {
        guard let listed = size.count else { return nil }
        self.init(
            listed, isExact: size.isExact, settled: settled, mayBeFewer: options.skipsAny, .left,
            sentSeconds: sentSeconds, elapsedSeconds: elapsedSeconds)
    }

    /// Creates the value for rows that were counted one by one.
    init(sendable count: UInt64, of listed: UInt64, elapsedSeconds: Double) {
        assert(count <= listed, "a row to send is a row of the list")
        self.init(
            count, isExact: true, mayBeFewer: false, count == listed ? .listed : .sendable,
            elapsedSeconds: elapsedSeconds)
    }

    /// Seconds since the first start of a campaign; 0 if the clock was set back since then.
    static func seconds(since firstStart: UInt64, _ now: Now) -> Double {
        Double(now.wallMilliseconds - min(firstStart, now.wallMilliseconds)) / 1000
    }

    /// Human-readable description of the rows, printed after the time that sending them takes.
    var words: String {
        let rows =
            switch kind {
            case .listed: "these rows"
            case .left: "the rows that are left"
            case .sendable: "the rows to send"
            }
        return mayBeFewer ? "if all \(rows) are sent" : "for \(rows)"
    }
}

extension SendOptions {
    /// Whether options may skip rows.
    var skipsAny: Bool { mayExcludeRows || !rules.isEmpty }
}
