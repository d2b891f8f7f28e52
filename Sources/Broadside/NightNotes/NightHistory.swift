import BroadsideSupport

/// Which nights of a campaign were begun, by the notes about them.
///
///     (none) ──intended, ordered──> intended ──begun──> begun ──removed──> removed
///                                      ▲                  │
///                                      └────withdrawn─────┘
///
/// A night that is intended has sent nothing, so that it may begin. One that is begun may have, whether its ledger
/// is still there or not.
struct NightHistory: Sendable {
    /// What is noted.
    enum Note: String, CaseIterable, Sendable {
        /// A start of the night on its own day.
        case intended
        /// A start of the night on another day, whose date was given.
        case ordered
        /// Its ledger is durable, and its first request may follow.
        case begun
        /// Nothing was sent, and its ledger is discarded.
        case withdrawn
        /// It is finished, and its ledger was removed because newer ones were enough.
        case removed
    }

    enum State: Sendable {
        case intended, begun, removed
    }

    /// A night, and what is known of it.
    struct Night: Sendable {
        let date: NightDate
        fileprivate(set) var state = State.intended
        /// The latest start on its own day before it had begun; nil if there was none: a night that was only ordered
        /// continues only if its date is given again.
        fileprivate(set) var startedAtMilliseconds: UInt64?
        /// When the latest of its notes was made.
        fileprivate(set) var notedAtMilliseconds: UInt64
        /// The campaign's file, by its absolute path in quotation marks.
        fileprivate(set) var campaign = ""
    }

    /// Each date once, in the order of their first notes.
    private(set) var nights: [Night] = []
    private var indexes: [NightDate: Int] = [:]
    /// The night that the latest note is about.
    private(set) var latest: NightDate?

    subscript(date: NightDate) -> Night? { indexes[date].map { nights[$0] } }

    /// Takes a note.
    ///
    /// - Parameter campaign: The campaign's file, of an intention.
    mutating func take(
        _ note: Note, of date: NightDate, at milliseconds: UInt64, campaign: String = ""
    ) {
        latest = date
        let index: Int
        if let known = indexes[date] {
            index = known
        } else {
            index = nights.count
            indexes[date] = index
            nights.append(Night(date: date, notedAtMilliseconds: milliseconds))
        }
        nights[index].notedAtMilliseconds = milliseconds
        switch note {
        case .intended, .ordered:
            // What was begun stays so.
            guard nights[index].state == .intended else { return }
            nights[index].campaign = campaign
            if note == .intended { nights[index].startedAtMilliseconds = milliseconds }
        case .begun: nights[index].state = .begun
        case .withdrawn: nights[index].state = .intended
        case .removed: nights[index].state = .removed
        }
        assert(nights.count == indexes.count, "each date has one night")
    }

    // MARK: Which night

    /// The night that a start without a date is about: the latest one if that began less than `length` ago,
    /// else today's.
    ///
    /// - Parameters:
    ///   - now: The time, in milliseconds.
    ///   - today: The day at that time.
    ///   - length: How long a night is, in milliseconds.
    /// - Throws: Exit code 1 if the clock is far behind the latest night: it would be begun again under another date.
    func night(
        at now: UInt64, today: NightDate, length: UInt64
    ) throws(BroadsideError) -> NightDate {
        let started = nights.compactMap { night in
            night.startedAtMilliseconds.map { (date: night.date, time: $0, state: night.state) }
        }
        guard let last = started.max(by: { $0.time < $1.time }), last.date != today else {
            return today
        }
        if now < last.time {
            // A clock that was set back a little does not begin another night.
            guard last.time - now >= length else { return last.date }
            throw BroadsideError(
                "this machine's clock says \(localDateAndTime(now)), and the night of \(last.date) was "
                    + "started at \(localDateAndTime(last.time)): set the clock, or name the night with "
                    + "--date", exitCode: ExitCode.failure)
        }
        return now - last.time < length && last.state != .removed ? last.date : today
    }
}

// MARK: As text

extension NightHistory {
    /// The first line of the file.
    static let header = "broadside nights 1\n"
    /// The last millisecond of the year 9999.
    private static let latestTime: UInt64 = 253_402_300_799_999

    /// A note as a line.
    ///
    /// - Parameter campaign: Without line breaks.
    static func line(
        _ note: Note, of date: NightDate, at milliseconds: UInt64, campaign: String
    ) -> String {
        assert(!campaign.utf8.contains(UInt8(ascii: "\n")), "a note is one line")
        let file = note == .intended || note == .ordered ? " \(campaign)" : ""
        return "\(date) \(note.rawValue) \(milliseconds)\(file)\n"
    }

    /// Reads the lines behind the header.
    ///
    /// - Parameters:
    ///   - text: Whole lines.
    ///   - path: The file's.
    /// - Throws: Exit code 5 for a line that was not written by `line`.
    init(_ text: Substring, path: String) throws(BroadsideError) {
        for (number, line) in text.split(separator: "\n", omittingEmptySubsequences: false)
            .dropLast().enumerated()
        {
            let words = line.split(
                separator: " ", maxSplits: 3, omittingEmptySubsequences: false
            ).map(String.init)
            guard words.count >= 3, let date = NightDate(words[0]),
                let note = Note(rawValue: words[1]), let time = UInt64(words[2]),
                time <= Self.latestTime,
                (words.count == 4) == (note == .intended || note == .ordered)
            else {
                throw BroadsideError(
                    "\(path): line \(number + 2) is damaged, so it is not known which nights were begun: put "
                        + "a backup of this file there", exitCode: ExitCode.disk)
            }
            take(note, of: date, at: time, campaign: words.count == 4 ? words[3] : "")
        }
    }
}
