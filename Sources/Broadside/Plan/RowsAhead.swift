/// Number of rows that a run has yet to send, as far as it is known when the plan is printed.
struct RowsAhead {
    /// Number of rows; an upper limit if `mayBeFewer`.
    let count: UInt64
    /// Whether fewer than `count` rows may be sent, because options may skip rows or earlier runs
    /// may have settled rows.
    let mayBeFewer: Bool
    /// Which rows the number counts.
    private let kind: Kind
    /// Time that earlier runs of the campaign spent sending, seconds.
    let sentSeconds: Double

    private enum Kind {
        /// All rows of the list.
        case listed
        /// Rows that earlier runs left.
        case left
        /// Rows that are neither skipped nor invalid.
        case sendable
    }

    private init(_ count: UInt64, mayBeFewer: Bool, _ kind: Kind, sentSeconds: Double = 0) {
        self.count = count
        self.mayBeFewer = mayBeFewer
        self.kind = kind
        self.sentSeconds = sentSeconds
    }

    /// Creates the value if only the size of the list is known.
    init(listed count: UInt64, _ options: SendOptions) {
        self.init(count, mayBeFewer: options.skipsAny || options.resumes, .listed)
    }

    /// Creates the value for the rows that earlier runs left.
    ///
    /// - Parameters:
    ///   - listed: Number of the list's rows.
    ///   - settled: Number of rows that this run does not send again.
    init(
        leftOf listed: UInt64, settled: UInt64, sentSeconds: Double, _ options: SendOptions
    ) {
        self.init(
            listed - min(listed, settled), mayBeFewer: options.skipsAny, .left,
            sentSeconds: sentSeconds)
    }

    /// Creates the value for rows that were counted one by one.
    init(sendable count: UInt64, of listed: UInt64) {
        assert(count <= listed, "a row to send is a row of the list")
        self.init(count, mayBeFewer: false, count == listed ? .listed : .sendable)
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
