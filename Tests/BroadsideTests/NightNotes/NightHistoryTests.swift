import BroadsideSupport
import Testing

@testable import BroadsideCampaigns

/// Which night a start is about, by the notes about earlier starts.
@Suite(.timeLimit(.minutes(60))) struct NightHistoryTests {
    private static let hour: UInt64 = 3_600_000
    /// 23:55 on the day called `evening`, in a zone without clock changes.
    private static let late: UInt64 = 1_795_566_900_000
    private let evening = NightDate("2026-11-25")!
    private let next = NightDate("2026-11-26")!

    private func night(
        _ history: NightHistory, after hours: Double, today: NightDate
    ) throws(BroadsideError) -> NightDate {
        let time = Double(Self.late) + hours * Double(Self.hour)
        return try history.night(at: UInt64(time), today: today, length: 12 * Self.hour)
    }

    @Test func `A night that was started before midnight goes on for its length, begun or not`()
        throws
    {
        var history = NightHistory()
        #expect(try night(history, after: 0, today: evening) == evening)
        history.take(.intended, of: evening, at: Self.late)
        for note in [nil, NightHistory.Note.begun, .withdrawn] {
            if let note { history.take(note, of: evening, at: Self.late + 1) }
            #expect(try night(history, after: 0.1, today: evening) == evening)
            #expect(try night(history, after: 0.1, today: next) == evening)
            #expect(try night(history, after: 11.99, today: next) == evening)
            #expect(try night(history, after: 12, today: next) == next)
        }
        // Its length counts from its own day, however often it is started later.
        history.take(.intended, of: evening, at: Self.late + Self.hour / 20)
        #expect(try night(history, after: 12.04, today: next) == evening)
        history.take(.ordered, of: evening, at: Self.late + 11 * Self.hour)
        #expect(try night(history, after: 12.06, today: next) == next)
    }

    @Test func `The night before a new one is the latest that began, if no later one did`() {
        let before = NightDate("2026-11-24")!
        var history = NightHistory()
        history.take(.begun, of: before, at: Self.late)
        history.take(.intended, of: evening, at: Self.late)
        #expect(history.latestBegun(before: next)?.date == before)
        #expect(history.latestBegun(before: before) == nil)
        history.take(.begun, of: evening, at: Self.late)
        #expect(history.latestBegun(before: next)?.date == evening)
        // The start of an earlier date repeats a night, or makes up for one.
        #expect(history.latestBegun(before: evening)?.date == before)
        history.take(.begun, of: next, at: Self.late)
        #expect(history.latestBegun(before: evening) == nil)
    }

    @Test func `A finished night ends early for the next date if it began after failed starts`() {
        let length = 12 * Self.hour
        var history = NightHistory()
        #expect(history.end(of: evening, length: length) == nil)
        history.take(.intended, of: evening, at: Self.late)
        #expect(history.end(of: evening, length: length) == Self.late + length)
        history.take(.intended, of: evening, at: Self.late + 10 * Self.hour)
        #expect(history.end(of: evening, length: length) == Self.late + 20 * Self.hour)
        history.take(.begun, of: evening, at: Self.late + 10 * Self.hour)
        history.take(.ordered, of: next, at: Self.late + 11 * Self.hour)
        #expect(history.end(of: evening, length: length) == Self.late + 20 * Self.hour)
        #expect(history.end(of: next, length: length) == nil)
        // How long ago it began counts, not its failed starts.
        let end = Self.late + 22 * Self.hour
        #expect(history.age(of: evening, at: end - 1, beyond: length) == nil)
        #expect(history.age(of: evening, at: end, beyond: length) == length)
        #expect(history.age(of: next, at: end, beyond: length) == nil)
        #expect(NightDate("2026-03-01")?.dayBefore == NightDate("2026-02-28"))
        #expect(NightDate("1970-01-01")?.dayBefore == nil)
    }

    @Test func `A night that was ordered on another day does not take the place of tonight's`()
        throws
    {
        var history = NightHistory()
        history.take(.ordered, of: NightDate("2026-11-01")!, at: Self.late - 6 * Self.hour)
        history.take(.begun, of: NightDate("2026-11-01")!, at: Self.late - 6 * Self.hour)
        #expect(try night(history, after: 0, today: evening) == evening)
        history.take(.intended, of: evening, at: Self.late)
        history.take(.ordered, of: NightDate("2026-11-02")!, at: Self.late + Self.hour)
        #expect(try night(history, after: 2, today: next) == evening)
    }

    @Test func `A clock that was set back far begins no night, and a little changes nothing`()
        throws
    {
        var history = NightHistory()
        history.take(.intended, of: evening, at: Self.late)
        let before = NightDate("2026-11-24")!
        #expect(try night(history, after: -1, today: before) == evening)
        let failure = #expect(throws: BroadsideError.self) {
            try night(history, after: -12, today: before)
        }
        #expect(failure?.exitCode == 1)
        #expect(failure?.message.contains("set the clock") == true)
        #expect(failure?.message.contains("with --date 2026-11-24, after which") == true)
    }

    @Test func `After a start whose clock was wrong, one with a date confirms the clock for good`()
        throws
    {
        var history = NightHistory()
        let earlier = NightDate("2026-11-23")!
        history.take(.intended, of: earlier, at: Self.late - 48 * Self.hour)
        history.take(.intended, of: evening, at: Self.late)
        history.take(.begun, of: evening, at: Self.late)
        let today = NightDate("2026-11-24")!
        for hours in [-30.0, -24] {
            #expect(throws: BroadsideError.self) {
                try night(history, after: hours, today: today)
            }
        }
        // Another night's date confirms nothing.
        history.take(.ordered, of: NightDate("2026-11-01")!, at: Self.late - 25 * Self.hour)
        #expect(throws: BroadsideError.self) { try night(history, after: -24, today: today) }
        history.take(.intended, of: today, at: Self.late - 24 * Self.hour)
        history.take(.begun, of: today, at: Self.late - 24 * Self.hour)
        #expect(try night(history, after: -23.9, today: today) == today)
        #expect(try night(history, after: -23.5, today: evening) == today)
        #expect(try night(history, after: -1, today: evening) == evening)
        #expect(try night(history, after: 24, today: next) == next)
    }

    @Test func `A ledger without a note counts from its first start if that was on its date`()
        throws
    {
        // The day is that of this machine's time zone.
        let today = try #require(NightDate(localDayOf: Self.late))
        let before = try #require(today.dayBefore)
        let tomorrow = NightDate("9999-12-31")!
        let starts = [(today, Self.late), (before, Self.late - 24 * Self.hour)]
        func night(_ history: NightHistory, after hours: UInt64) throws -> NightDate {
            try history.night(
                at: Self.late + hours * Self.hour, today: tomorrow, length: 12 * Self.hour)
        }
        var history = NightHistory()
        history.add(ledgerStarts: starts)
        #expect(try night(history, after: 11) == today)
        #expect(try night(history, after: 12) == tomorrow)
        #expect(history[today]?.campaign == "" && history[today]?.state == .intended)
        #expect(history[before]?.startedAtMilliseconds == Self.late - 24 * Self.hour)
        // Only the end of the notes is lost.
        history = NightHistory()
        history.take(.intended, of: before, at: Self.late - 24 * Self.hour)
        history.add(ledgerStarts: starts)
        #expect(try night(history, after: 11) == today)
        // Another day's ledger, one that is noted, and one that is older than a noted start.
        history = NightHistory()
        history.add(ledgerStarts: [(before, Self.late)])
        #expect(history[before] == nil)
        history.take(.ordered, of: today, at: Self.late + 1)
        history.add(ledgerStarts: starts)
        #expect(history[today]?.startedAtMilliseconds == nil)
        history = NightHistory()
        history.take(.intended, of: today, at: Self.late)
        history.add(ledgerStarts: starts)
        #expect(history[before] == nil)
    }

    @Test func `The night before a date is unsent if it was started and has not begun`() {
        var history = NightHistory()
        #expect(history.latestUnsent(before: next) == nil)
        history.take(.intended, of: evening, at: Self.late)
        #expect(history.latestUnsent(before: next) == evening)
        #expect(history.latestUnsent(before: evening) == nil)
        history.take(.begun, of: evening, at: Self.late)
        #expect(history.latestUnsent(before: next) == nil)
        // An older night is not a start's night any more.
        history.take(.ordered, of: NightDate("2026-11-24")!, at: Self.late)
        #expect(history.latestUnsent(before: next) == nil)
        history.take(.withdrawn, of: evening, at: Self.late)
        #expect(history.latestUnsent(before: next) == evening)
    }

    @Test func `A removed night stays removed, and a begun one is not intended again`() throws {
        var history = NightHistory()
        history.take(.intended, of: evening, at: 1, campaign: "\"/a\"")
        history.take(.begun, of: evening, at: 2)
        history.take(.intended, of: evening, at: 3, campaign: "\"/b\"")
        #expect(history[evening]?.state == .begun && history[evening]?.campaign == "\"/a\"")
        #expect(history[evening]?.startedAtMilliseconds == 1)
        history.take(.removed, of: evening, at: 4)
        history.take(.ordered, of: evening, at: 5)
        #expect(history[evening]?.state == .removed && history.nights.count == 1)
        #expect(try history.night(at: 6, today: next, length: Self.hour) == next)
    }

    @Test
    func `A retry of a night that has not begun, and a date that was passed over, may be mistakes`()
    {
        let earlier = NightDate("2026-11-24")!
        var history = NightHistory()
        func doubt(
            _ date: NightDate, retries: Bool = false, ledgers: [NightDate] = []
        ) -> NightHistory.Doubt? {
            history.doubt(aboutBeginning: date, retries: retries, ledgers: ledgers)
        }
        #expect(doubt(evening) == nil)
        #expect(doubt(evening, retries: true) == .nothingToRetry(latest: nil))
        history.take(.intended, of: evening, at: 1)
        // Nothing was sent yet.
        #expect(doubt(evening) == nil && doubt(earlier) == nil)
        #expect(doubt(evening, retries: true) == .nothingToRetry(latest: nil))
        history.take(.begun, of: evening, at: 2)
        for retries in [false, true] {
            #expect(doubt(evening, retries: retries, ledgers: [evening]) == nil)
        }
        #expect(
            doubt(next, retries: true, ledgers: [evening]) == .nothingToRetry(latest: evening))
        #expect(doubt(next, ledgers: [evening]) == nil)
        #expect(doubt(earlier, ledgers: [evening]) == .isPast(latest: evening))
        // A ledger that has no note is one that `send` created.
        #expect(doubt(earlier, ledgers: [earlier, evening]) == nil)
        #expect(doubt(evening, ledgers: [next]) == nil)
        #expect(doubt(earlier, ledgers: [next]) == .isPast(latest: next))
        // The removal of its ledger does not make a night one that never began.
        history.take(.removed, of: evening, at: 3)
        #expect(doubt(earlier) == .isPast(latest: evening))
        #expect(doubt(evening, retries: true) == nil)
        // A night that failed on its own evening may begin later.
        history.take(.intended, of: earlier, at: 4)
        #expect(doubt(earlier, ledgers: [evening]) == nil)
        #expect(
            doubt(earlier, retries: true, ledgers: [evening])
                == .nothingToRetry(latest: evening))
    }

    @Test func `Notes read as they were written, and a line that nobody wrote is named`() throws {
        var written = NightHistory()
        var text = ""
        let notes: [(NightHistory.Note, NightDate)] = [
            (.intended, evening), (.begun, evening), (.ordered, next), (.withdrawn, next),
            (.removed, evening),
        ]
        for (index, (note, date)) in notes.enumerated() {
            let campaign = note == .intended || note == .ordered ? "\"/with a blank\"" : ""
            written.take(note, of: date, at: UInt64(index), campaign: campaign)
            text += NightHistory.line(
                note, of: date, at: UInt64(index), campaign: "\"/with a blank\"")
        }
        let read = try NightHistory(Substring(text), path: "nights")
        #expect(read.nights.map(\.date) == written.nights.map(\.date))
        #expect(read.nights.map(\.state) == written.nights.map(\.state))
        #expect(read.nights.map(\.campaign) == written.nights.map(\.campaign))
        #expect(
            read.nights.map(\.startedAtMilliseconds) == written.nights.map(\.startedAtMilliseconds))
        #expect(read.latest == evening)

        for line in [
            "2026-11-25 begun", "2026-11-25 begun 1 x", "2026-11-25 intended 1",
            "2026-02-29 begun 1", "2026-11-25 sent 1", "", "2026-11-25 begun 999999999999999999",
        ] {
            let failure = #expect(throws: BroadsideError.self) {
                try NightHistory("2026-11-24 begun 1\n\(line)\n", path: "nights")
            }
            #expect(failure?.exitCode == 5 && failure?.message.contains("line 3") == true)
        }
    }

    @Test func `A name with a date is found, and one with other numbers is not`() {
        for name in [
            "News 2026-11-29", "2026-11-29", "news_29.11.2026", "a.2026_11_29-b", "news-20261129",
            "Evening 1-2026-11-29",
        ] { #expect(NightDate.isIn(name: name), "\(name)") }
        for name in [
            "", "Evening 1", "app 5.10.1", "2026-11", "11-29", "2026-13-01", "2026", "12345678",
            "a-1-2-3", "2026-11-2x", "120261129",
        ] { #expect(!NightDate.isIn(name: name), "\(name)") }
    }

    @Test func `A campaign in parts has another number each night, the same on each machine`() {
        // printf '0123456789abcdef:2026-11-25' | sha256sum
        #expect(evening.campaignNumber(of: 0x0123_4567_89ab_cdef) == 0xec98_2420_71fc_a45c)
        #expect(next.campaignNumber(of: 0x0123_4567_89ab_cdef) == 0x4214_f854_dcb7_a3f7)
        #expect(evening.campaignNumber(of: 1) != evening.campaignNumber(of: 2))
    }

    @Test func `A date is ten characters of a day that exists`() {
        for text in ["2026-11-25", "2024-02-29", "2000-02-29", "1970-01-01", "9999-12-31"] {
            #expect(NightDate(text)?.description == text)
        }
        for text in [
            "", "2026-11-31", "2026-02-29", "2100-02-29", "2026-13-01", "2026-00-10", "2026-10-00",
            "2026-1-01", "26-11-25", "2026/11/25", "2026-11-25 ", "+026-11-25", "1969-12-31",
            "２026-11-25", "today",
        ] { #expect(NightDate(text) == nil, "\(text)") }
        #expect(NightDate("2026-09-30")! < NightDate("2026-10-01")!)
    }
}
