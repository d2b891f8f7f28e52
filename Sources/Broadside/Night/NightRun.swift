import BroadsideLedgers
import BroadsideObservability
internal import BroadsidePrimitives
public import BroadsideSupport

/// Runs `broadside night`: begins or continues the night that is due, or finds that it is finished.
///
/// These steps prevent a second campaign for a date: lock the folder's notes, note the night as
/// intended, create its ledger, note the night as begun, send the first request. Notes and ledger
/// are durable before the next step begins. If the process is killed between two of these steps,
/// the night can still begin or continue. A night that is noted as begun but has no ledger counts
/// as lost, and does not begin again.
public enum NightRun {
    /// Runs the night with the options.
    ///
    /// - Returns: The documented exit code.
    /// - Throws: The cause if the night could not begin, with its exit code. In that case, nothing
    ///   was sent.
    public static func run(_ options: NightOptions) throws(BroadsideError) -> Int32 {
        try run(options, now: Clock.now().wallMilliseconds)
    }

    static func run(_ options: NightOptions, now: UInt64) throws(BroadsideError) -> Int32 {
        CampaignRun.blockHangUp(options.send)
        var call: NightCall
        do throws(BroadsideError) {
            call = try NightCall(options, now: now)
        } catch {
            let isDated = options.date != nil || options.send.opensNoConnection
            let error = isDated ? error : namingToday(error, at: now)
            writeSummary(of: error, options.send)
            throw error
        }
        if options.send.opensNoConnection { return try call.check() }
        let date: NightDate
        let notes: NightNotes
        do throws(BroadsideError) {
            try call.folder.make()
            try call.chooseDate()
            notes = try NightNotes(folder: call.folder.path)
            call.folder.finishRemovals(notes)
            date = try call.date(notes.history)
            if let code = try call.prepare(date, notes) { return code }
        } catch {
            let error = call.naming(error)
            Summary.write(error, isNew: false, to: options.send, nil)
            throw error
        }
        return try call.send(date, notes)
    }

    /// Writes the summary of a night that did not begin, because its options are wrong. Writes no
    /// file with the name of the notes: the folder of the night's notes is not known.
    ///
    /// - Parameter options: The options that could be read.
    public static func writeSummary(of error: BroadsideError, _ options: SendOptions) {
        let name = options.summary.map { $0.parts(atLast: "/")?.behind ?? $0[...] }
        guard name != NightNotes.name[...] else { return }
        var options = options
        options.ledgerUse = .resumeOrBegin
        CampaignRun.writeSummary(of: error, options)
    }
}

/// One call of `broadside night`.
struct NightCall {
    let folder: NightFolder
    let options: NightOptions
    let now: UInt64
    let today: NightDate
    /// Date that the options name; nil: none.
    let given: NightDate?
    /// The file of `--date-file`, if an earlier start wrote it, and `--date` does not replace it.
    private let dateFile: NightDateFile?
    /// Date in the file of `--date-file` that this start has chosen; nil: none.
    private var chosen: NightDate?
    /// Length of a night, in milliseconds.
    let length: UInt64

    init(_ options: NightOptions, now: UInt64) throws(BroadsideError) {
        // With another date, this start would find another night.
        if let zone = ZoneVariable.unknownZone(at: now) {
            throw ZoneDatabase().unknownLocalZone(zone)
        }
        guard let today = NightDate(localDayOf: now) else {
            throw BroadsideError(
                "this machine's clock shows no valid date: set the clock",
                exitCode: ExitCode.failure)
        }
        self.now = now
        self.today = today
        given = try options.date.map { (text) throws(BroadsideError) in
            guard let date = NightDate(text) else {
                throw .usage(
                    "date", "'\(text)' is not a date: write it like \(today)")
            }
            guard date <= today else {
                throw .usage(
                    "date", "\(text) is in the future, today is \(today): leave out --date")
            }
            return date
        }
        dateFile =
            try given == nil
            ? options.dateFile.flatMap { (path) throws(BroadsideError) in
                try NightDateFile.read(path)
            } : nil
        guard options.nightLength > 0, options.nightLength <= NightOptions.nightLengthLimit else {
            throw .usage(
                "night-length",
                "must be above 0 and at most 20h, because the next night may begin after 23 hours: "
                    + "write a time such as 12h"
            )
        }
        length = options.nightLength / millisecond
        folder = try NightFolder(options)
        var options = options
        options.send.nightFolder = folder.path
        options.send.skipsOwnDead = options.send.asksOwnNights
        options.send.nightLength = options.nightLength
        self.options = options
        for (option, path) in [
            ("summary", options.send.summary), ("report", options.send.report),
            ("trace-frames", options.send.traceFrames), ("metrics", options.send.metrics),
            ("date-file", options.dateFile),
        ] {
            guard let path, OutputRule.areSame(path, "\(folder.path)/\(NightNotes.name)") else {
                continue
            }
            throw .usage(
                option,
                "\(path) is the file that records which nights were started: "
                    + "choose another")
        }
    }

    /// Date of the night that this call begins or continues.
    func date(_ history: NightHistory) throws(BroadsideError) -> NightDate {
        if let date = given ?? chosen ?? earlierDate(history) { return date }
        let date = try history.night(at: now, today: today, length: length)
        guard date < today, options.send.retry.isEmpty,
            let end = history.end(of: date, length: length), now >= end, isOver(date, history)
        else { return date }
        return today
    }

    /// Date from the file of `--date-file` that an earlier start wrote; nil: none.
    func earlierDate(_ history: NightHistory) -> NightDate? {
        dateFile?.date(at: now, history)
    }

    /// Chooses the date, and writes it to the file of `--date-file` before the night begins. A start
    /// that reads the file thus belongs to the same night, even if this process is killed.
    fileprivate mutating func chooseDate() throws(BroadsideError) {
        guard given == nil, let path = options.dateFile else { return }
        let history = try NightNotes.history(folder: folder.path)
        let date = try date(history)
        if earlierDate(history) == nil { try NightDateFile(date, at: now).write(to: path) }
        chosen = date
    }

    /// Path of the campaign's file, in the form that the notes contain. Links are not resolved,
    /// because the links of a ConfigMap change their targets with each update.
    private var campaign: String { JSONLine.quoted(normalizedPath(options.campaign)) }

    // MARK: Checks without writing

    /// Checks the night that would be sent, for `--dry-run` and `--preview`.
    func check() throws(BroadsideError) -> Int32 {
        warnOfDatedName()
        folder.checkName()
        let history = try NightNotes.history(folder: folder.path)
        var date = try date(history)
        let mayBeNext = given == nil && options.send.retry.isEmpty
        // During the day the check applies to the next night, not to the finished one.
        if mayBeNext, isOver(date, history) { date = today }
        let ledger = folder.ledger(date)
        if given != nil, try isRemoved(date, history) { return ExitCode.complete }
        try refuseLost(date, history)
        try refuseOtherCampaign(date, history)
        try folder.refuseElsewhere(date)
        try folder.refuseMisplaced(date, history)
        try checkBeginning(date, history)
        if options.send.isDryRun {
            try folder.checkOthers(than: date, options.send, at: now, mayRun: true)
        }
        var send = send(of: date)
        if mayBeNext, isOver(date, history) {
            // The list and payload may be those of the next night by now.
            standardErrorLine(
                "the night of \(date) is finished and is not sent again; the next night would be "
                    + "as follows"
            )
            warnOfCap()
            return try CampaignRun.run(send)
        }
        if send.preview == nil {
            if let code = try finished(ledger, date, history) { return code }
            try refuseRehearsal(ledger, date)
            send.ledger = ledger
            send.ledgerUse = .resumeOrBegin
        }
        let isThere = try LedgerDirectory.isBegunLedgerIfThere(ledger)
        let continues = send.preview == nil ? try sendsRows(date, history) : true
        if continues {
            standardErrorLine(
                "the night of \(date) would \(isThere ? "continue" : "begin") in \(ledger)")
        }
        if !isThere { try warnOfBeginning(date, history) }
        return try CampaignRun.run(send)
    }

    // MARK: The night

    /// Checks the night, and notes that it is to be sent.
    ///
    /// - Parameter notes: Notes of the folder, locked.
    /// - Returns: The exit code if the night is finished; nil if it has to be sent.
    fileprivate func prepare(
        _ date: NightDate, _ notes: NightNotes
    ) throws(BroadsideError) -> Int32? {
        warnOfDatedName()
        let ledger = folder.ledger(date)
        let history = notes.history
        if try isRemoved(date, history) { return ExitCode.complete }
        try refuseLost(date, history)
        try refuseOtherCampaign(date, history)
        try folder.refuseElsewhere(date)
        try folder.refuseMisplaced(date, history)
        try checkBeginning(date, history)
        // The start is noted even if it is then refused because `send` is running with the ledger of
        // another night. A repeat after midnight thus still belongs to this date.
        try noteIntention(date, notes)
        try folder.checkOthers(than: date, options.send, at: now)
        if try fileExists(ledger), try LedgerDirectory.closeToGroup(ledger) {
            standardErrorLine(
                "broadside: warning: \(ledger) was open to its group: these permissions are removed"
            )
        }
        if let code = try finished(ledger, date, history) {
            // `broadside send` may have created the ledger. That command makes no notes about
            // nights.
            if history[date]?.state != .begun { try notes.add(.begun, of: date, at: now) }
            end(date, code, notes)
            return code
        }
        try refuseRehearsal(ledger, date)
        let isThere = try LedgerDirectory.isBegunLedgerIfThere(ledger)
        if !isThere { try warnOfBeginning(date, history) }
        if date != today || history[date]?.state == .begun, try sendsRows(date, history) {
            standardErrorLine(
                "the night of \(date) \(isThere ? "continues" : "begins") in \(ledger)")
        }
        return nil
    }

    /// Sends a night that `prepare` has checked.
    fileprivate func send(
        _ date: NightDate, _ notes: NightNotes
    ) throws(BroadsideError) -> Int32 {
        let isBegun = notes.history[date]?.state == .begun
        let code: Int32
        do throws(BroadsideError) {
            code = try CampaignRun.run(sending(date, NightRecord(notes, date), isBegun: isBegun))
        } catch {
            end(date, error.exitCode, notes)
            guard error.exitCode == ExitCode.rowsRemain else { throw error }
            // The original message would advise a resume by `send`.
            let deadline =
                options.send.deadline == nil
                ? "" : ", and with a later --deadline if it has passed"
            throw BroadsideError(
                "the night of \(date) was interrupted: run the same command with --date \(date) to "
                    + "continue\(deadline)",
                exitCode: error.exitCode)
        }
        end(date, code, notes)
        return code
    }

    /// Refuses a night that was begun but whose ledger is missing, so that nothing is sent twice.
    private func refuseLost(
        _ date: NightDate, _ history: NightHistory
    ) throws(BroadsideError) {
        let ledger = folder.ledger(date)
        guard let night = history[date], night.state == .begun,
            try !LedgerDirectory.isBegunLedgerIfThere(ledger)
        else { return }
        throw .usage(
            "ledgers",
            "\(ledger): the night of \(date) was started, but its ledger is "
                + "gone. Its rows may already have been sent, so nothing is sent now: "
                + "put the ledger back")
    }

    /// Refuses a night that another campaign with the same name has begun. Without this check, the
    /// night would count as already sent for this campaign.
    private func refuseOtherCampaign(
        _ date: NightDate, _ history: NightHistory
    ) throws(BroadsideError) {
        guard let night = history[date], night.state == .begun, !isOwn(night.campaign) else {
            return
        }
        throw .usage(
            "campaign",
            "\(options.campaign): the night of \(date) in \(folder.path) belongs to campaign "
                + "\(night.campaign). If that file was moved, put it back or leave a link there. If "
                + "this is another campaign, give it another --name. It then goes to its "
                + "whole list, and "
                + "\(LedgerSession.reached(by: try? LedgerReader(path: folder.ledger(date))))"
        )
    }

    /// Whether the notes name this campaign's file, under any path that leads to it.
    private func isOwn(_ noted: String) -> Bool {
        if noted == campaign { return true }
        let path = try? JSONCoding.decode(String.self, from: Array(noted.utf8))
        return path.map { areSamePaths($0, options.campaign) } ?? false
    }

    /// Refuses a retry that would begin a night, and warns of a date that may be a mistake. In both
    /// cases, the campaign would go to all devices once more.
    private func checkBeginning(
        _ date: NightDate, _ history: NightHistory
    ) throws(BroadsideError) {
        let doubt = history.doubt(
            aboutBeginning: date, retries: !options.send.retry.isEmpty,
            ledgers: try folder.ledgerDates())
        switch doubt {
        case nil: return
        case .nothingToRetry(let latest):
            let advice =
                latest.map {
                    "the latest night that has begun is that of \($0): run the same command with "
                        + "--date \($0) --retry \(options.send.retry.optionText)"
                } ?? "no night has begun in \(folder.path): leave out --retry"
            throw .usage(
                "retry",
                "sends rows of a night again, but the night of \(date) has not begun, so nothing "
                    + "is sent: \(advice)")
        case .isPast(let latest):
            standardErrorLine(
                "broadside: warning: --date \(date): that night was never started, but the later "
                    + "night of \(latest) was: this start sends the campaign to the whole list again"
            )
        }
    }

    /// Warns of what may be wrong although a night begins: the night before it, and the options.
    private func warnOfBeginning(
        _ date: NightDate, _ history: NightHistory
    ) throws(BroadsideError) {
        try folder.warnOfMissing(before: date, history, options.send)
        if given == nil { try folder.warnOfUnsent(before: date, history) }
        if let warning = try options.send.delivery.dateWarning(ofNight: date, at: now) {
            standardErrorLine(warning)
        }
        warnOfCap()
    }

    private func warnOfCap() {
        if let warning = options.send.nightlyCapWarning(of: folder.path) {
            standardErrorLine(warning)
        }
    }

    /// Warns if the campaign's name contains a date, as in `--name "News $(date +%F)"`. Each date
    /// then has another folder, which knows nothing of the nights before.
    private func warnOfDatedName() {
        guard NightDate.isIn(name: folder.name) else { return }
        standardErrorLine(
            "broadside: warning: the campaign's name '\(folder.name)' contains a date. If the name "
                + "changes from night to night, --skip-dead and --keep find no earlier night, and a "
                + "start after midnight does not continue the night: give the campaign a --name "
                + "without a date, because each night's ledger is named after its date anyway")
    }

    private func noteIntention(_ date: NightDate, _ notes: NightNotes) throws(BroadsideError) {
        let known = notes.history[date]
        // A night that continues after midnight, or has begun, keeps its start time.
        guard
            known == nil
                || known?.state == .intended && (date == today || known?.campaign != campaign)
        else { return }
        // A night that is known only by its ledger keeps the ledger's first start.
        let start = known.flatMap { $0.campaign.isEmpty ? $0.startedAtMilliseconds : nil }
        try notes.add(
            date == today || start != nil ? .intended : .ordered, of: date, at: start ?? now,
            campaign: campaign)
        assert(notes.history[date]?.campaign == campaign, "a night is noted before it begins")
    }

    /// Options of the send that the night runs.
    private func sending(
        _ date: NightDate, _ record: NightRecord, isBegun: Bool
    ) -> SendOptions {
        var send = send(of: date)
        send.ledger = folder.ledger(date)
        // A night that has begun never begins again, even if its ledger disappears.
        send.ledgerUse = isBegun ? .resume : .resumeOrBegin
        send.name = folder.name
        send.command = send.command?.night(of: date.description)
        send.night = record
        return send
    }

    /// Writes the pages at the end of a night, and removes old ledgers if the night is finished.
    private func end(_ date: NightDate, _ code: Int32, _ notes: NightNotes) {
        // Another process uses the ledger.
        guard code != ExitCode.inUse else { return }
        folder.writeMissingPage(of: date)
        if let keep = options.keep, code == ExitCode.complete || code == ExitCode.openRows {
            let removed = folder.removeOld(keeping: keep, sent: date, notes)
            if !removed.isEmpty {
                if isTalkative { folder.reportRemoved(removed, keeping: keep) }
                folder.warnOfForgotten(
                    removed, keeping: keep, sent: date, options.send.memory(of: folder.path))
            }
        }
        folder.writeIndex(after: date)
        if isTalkative, let pages = folder.pages(of: date) {
            standardErrorLine("pages: \(pages)")
        }
    }

    /// Whether lines other than warnings are printed. `--progress none` turns them off for cron,
    /// which mails all output.
    private var isTalkative: Bool { options.send.progress == .auto }
}

extension LedgerDirectory {
    /// Whether a path is a ledger that has begun. The path need not exist.
    static func isBegunLedgerIfThere(_ path: String) throws(BroadsideError) -> Bool {
        guard try fileExists(path), try isDirectoryPath(path) else { return false }
        return try isBegunLedger(path)
    }
}
