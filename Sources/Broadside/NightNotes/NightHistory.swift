internal import BroadsideLedgers
import BroadsideSupport

/// Nights of a campaign and their states, from the notes about them.
///
///     (none) ──intended, ordered──> intended ──begun──> begun ──removed──> removed
///                                      ▲                  │
///                                      └────withdrawn─────┘
///
/// A night that is intended has sent nothing, so it may begin. A night that has begun may have sent
/// rows, whether or not its ledger still exists.
struct NightHistory: Sendable {
    /// Kind of note.
    enum Note: String, CaseIterable, Sendable {
        /// The night was started on its date.
        case intended
        /// The night was started on a day other than its date. The option `--date` named the date.
        case ordered
        /// The night's ledger is durable, and the first request may follow.
        case begun
        /// Nothing was sent, and the ledger is being discarded.
        case withdrawn
        /// The night is finished, and its ledger was removed because enough newer ones exist.
        case removed
    }

    enum State: Sendable {
        case intended, begun, removed
    }

    /// State of a night.
    struct Night: Sendable {
        let date: NightDate
        fileprivate(set) var state = State.intended
        /// Time of the latest note `intended` (the night was started on its own date) before the
        /// first note `begun`; nil if there was none. If it is nil, the night continues only if
        /// `--date` names its date again.
        fileprivate(set) var startedAtMilliseconds: UInt64?
        /// Number of the note that set `startedAtMilliseconds`.
        fileprivate var startNumber = 0
        /// Time of the first note `intended`; nil if there was none. It is earlier than
        /// `startedAtMilliseconds` if the first starts failed before the night began.
        fileprivate(set) var firstStartedAtMilliseconds: UInt64?
        /// Time of the night's latest note.
        fileprivate(set) var notedAtMilliseconds: UInt64
        /// Absolute path of the campaign's file, in quotation marks; empty if the night has a
        /// ledger, but no note.
        fileprivate(set) var campaign = ""
    }

    /// All nights in the order of their first notes.
    private(set) var nights: [Night] = []
    private var indexes: [NightDate: Int] = [:]
    private var noteCount = 0
    /// Night of the latest note.
    private(set) var latest: NightDate?

    subscript(date: NightDate) -> Night? { indexes[date].map { nights[$0] } }

    /// Applies a note.
    ///
    /// - Parameter campaign: Path of the campaign's file, for `intended` and `ordered`.
    mutating func take(
        _ note: Note, of date: NightDate, at milliseconds: UInt64, campaign: String = ""
    ) {
        latest = date
        noteCount += 1
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
            // A night that has begun keeps its state.
            guard nights[index].state == .intended else { return }
            nights[index].campaign = campaign
            guard note == .intended else { return }
            nights[index].startedAtMilliseconds = milliseconds
            nights[index].startNumber = noteCount
            nights[index].firstStartedAtMilliseconds =
                nights[index].firstStartedAtMilliseconds ?? milliseconds
        case .begun: nights[index].state = .begun
        case .withdrawn: nights[index].state = .intended
        case .removed: nights[index].state = .removed
        }
        assert(nights.count == indexes.count, "each date has one night")
    }

    /// Adds nights that have a ledger, but no note, because the file or its end was lost. The first
    /// start of such a ledger counts as the night's start if it was on the night's date. A ledger
    /// that is older than a noted start changes nothing.
    ///
    /// - Parameter starts: First starts of these ledgers, in milliseconds.
    mutating func add(ledgerStarts starts: [(date: NightDate, milliseconds: UInt64)]) {
        let noted = nights.compactMap(\.startedAtMilliseconds).max() ?? 0
        for (date, time) in starts.sorted(by: { $0.milliseconds < $1.milliseconds }) {
            guard time > noted, self[date] == nil, NightDate(localDayOf: time) == date else {
                continue
            }
            take(.intended, of: date, at: time)
        }
    }

    // MARK: Selection of the night

    /// Night for a start without a date: the latest night if it began less than `length` ago,
    /// otherwise today's.
    ///
    /// - Parameters:
    ///   - now: Current time, in milliseconds.
    ///   - today: Day at that time.
    ///   - length: Length of a night, in milliseconds.
    /// - Throws: Exit code 1 if the clock is far behind the time of the latest night, because that
    ///   night would begin again under another date.
    func night(
        at now: UInt64, today: NightDate, length: UInt64
    ) throws(BroadsideError) -> NightDate {
        guard let last = lastStarted(length: length), last.date != today else { return today }
        if now < last.time {
            // A clock that was set back a little does not begin another night.
            guard last.time - now >= length else { return last.date }
            throw BroadsideError(
                "this machine's clock says \(localDateAndTime(now)), but the "
                    + "night of \(last.date) was started at "
                    + "\(localDateAndTime(last.time)): set the clock; if it is right now, and was "
                    + "wrong then, run the same command with --date \(today), after which "
                    + "the next nights need no --date", exitCode: ExitCode.failure)
        }
        return now - last.time < length && last.state != .removed ? last.date : today
    }

    /// Night with the latest time of a start on its date; nil if there is none.
    ///
    /// If a night was started after another one, but its time is earlier by `length` or more, then
    /// `--date` has confirmed the clock: it was wrong at the other start, which is ignored.
    private func lastStarted(
        length: UInt64
    ) -> (date: NightDate, time: UInt64, state: State)? {
        var last: (date: NightDate, time: UInt64, state: State)?
        var earliest = UInt64.max
        for night in nights.sorted(by: { $0.startNumber > $1.startNumber }) {
            guard let time = night.startedAtMilliseconds else { continue }
            earliest = min(earliest, time)
            guard time - earliest < length, last.map({ time > $0.time }) ?? true else { continue }
            last = (night.date, time, night.state)
        }
        return last
    }

    /// Time from which a start without a date begins the next date, if this night is finished; nil
    /// if the night was not started on its date.
    ///
    /// If the first starts of a night failed, it may have begun much later. Then it does not block
    /// the next date for its whole length.
    ///
    /// - Parameter length: Length of a night, in milliseconds.
    func end(of date: NightDate, length: UInt64) -> UInt64? {
        guard let night = self[date], let start = night.startedAtMilliseconds,
            let first = night.firstStartedAtMilliseconds
        else { return nil }
        return min(start + length, first + Self.dayLength)
    }

    /// A start that comes so long after a night's first start, in milliseconds, is not one of its
    /// repeats: 20 hours. The next night may begin 23 hours later if clocks are set forward.
    static var dayLength: UInt64 { 20 * 3_600_000 }

    /// Time since a night began, in milliseconds, if a start without a date comes so late that it
    /// may be meant for another night; nil otherwise.
    ///
    /// - Parameters:
    ///   - now: Time of the start, in milliseconds.
    ///   - length: Length of a night, in milliseconds.
    func age(of date: NightDate, at now: UInt64, beyond length: UInt64) -> UInt64? {
        guard let start = self[date]?.startedAtMilliseconds, now >= start, now - start >= length
        else { return nil }
        return now - start
    }

    /// The latest night that may have sent rows, if a date is after it; nil if the date is not, or if
    /// there is no such night.
    func latestBegun(before date: NightDate) -> Night? {
        let others = nights.filter { $0.state != .intended && $0.date != date }
        guard let latest = others.max(by: { $0.date < $1.date }), latest.date < date else {
            return nil
        }
        return latest
    }

    /// The latest night before a date, if it was started and has sent nothing; nil otherwise.
    func latestUnsent(before date: NightDate) -> NightDate? {
        let latest = nights.filter { $0.date < date }.max { $0.date < $1.date }
        return latest.flatMap { $0.state == .intended ? $0.date : nil }
    }

    // MARK: Starts that may be mistakes

    /// Why a start that would begin a night may be a mistake.
    enum Doubt: Equatable {
        /// The start is to send rows of the night again, but the night has not sent any rows yet.
        /// `latest` is the latest night with a ledger; nil if no night has a ledger.
        case nothingToRetry(latest: NightDate?)
        /// A later night has begun, but no start of this night is noted, so the date may be a
        /// mistake.
        case isPast(latest: NightDate)
    }

    /// Returns why a start may be a mistake; nil if the night has begun, or if nothing is wrong
    /// with beginning it.
    ///
    /// - Parameters:
    ///   - retries: Whether the start is to send rows again.
    ///   - ledgers: Dates that have a ledger, oldest first.
    func doubt(
        aboutBeginning date: NightDate, retries: Bool, ledgers: [NightDate]
    ) -> Doubt? {
        let isNoted = self[date] != nil
        guard self[date]?.state ?? .intended == .intended, !ledgers.contains(date) else {
            return nil
        }
        if retries { return .nothingToRetry(latest: ledgers.last) }
        let begun = nights.filter { $0.state != .intended }.map(\.date) + ledgers
        guard !isNoted, let latest = begun.max(), date < latest else { return nil }
        return .isPast(latest: latest)
    }
}

// MARK: Text format

extension NightHistory {
    /// First line of the notes file.
    static let header = "\(OutputRule.nightNotesMark)1\n"
    /// The last millisecond of the year 9999.
    static let latestTime: UInt64 = 253_402_300_799_999

    /// Formats a note as a line.
    ///
    /// - Parameter campaign: Path without line breaks.
    static func line(
        _ note: Note, of date: NightDate, at milliseconds: UInt64, campaign: String
    ) -> String {
        assert(!campaign.utf8.contains(UInt8(ascii: "\n")), "a note is one line")
        let file = note == .intended || note == .ordered ? " \(campaign)" : ""
        return "\(date) \(note.rawValue) \(milliseconds)\(file)\n"
    }

    /// Parses the lines after the header.
    ///
    /// - Parameters:
    ///   - text: Complete lines.
    ///   - path: Path of the file.
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
                    "\(path): line \(number + 2) is damaged, so it is not "
                        + "known which nights were started: put a backup of this file there",
                    exitCode: ExitCode.disk)
            }
            take(note, of: date, at: time, campaign: words.count == 4 ? words[3] : "")
        }
    }
}
