internal import BroadsideLedgerFormat
import BroadsideLedgers
import BroadsideObservability
internal import BroadsidePolicy
import BroadsideSupport
internal import Glibc

/// Folder of one nightly campaign: a ledger per date, the notes about the nights, and a page about
/// all of them.
struct NightFolder {
    /// Name of the campaign, and of its folder.
    let name: String
    let path: String
    /// Folder of all campaigns.
    private let parent: String

    /// Maximum number of dates that a warning lists.
    private static let namedLimit = 5
    /// Limit on the length of a folder's name, bytes (NAME_MAX).
    private static let nameByteLimit = 255

    /// Resolves the folder without creating it.
    init(_ options: NightOptions) throws(BroadsideError) {
        guard let ledgers = options.ledgers else {
            throw .usage(
                "ledgers", "is missing: add --ledgers DIR, a folder for the nights' ledgers")
        }
        guard let information = SystemCall.status(ledgers) else {
            throw .file(
                option: "ledgers", ledgers, errno: errno,
                "check the path, or create the folder yourself with mkdir (a night "
                    + "never creates this folder, because an empty folder does not show "
                    + "which nights were sent)")
        }
        guard information.st_mode & S_IFMT == S_IFDIR else {
            throw .usage("ledgers", "\(ledgers) is not a directory: name a folder for ledgers")
        }
        guard try !OutputRule.isLedger(ledgers) else {
            throw .usage(
                "ledgers",
                "\(ledgers) is a ledger itself: name a folder for the ledgers of all nights")
        }
        name = try Self.name(options)
        var parent = ledgers
        while parent.utf8.count > 1, parent.utf8.last == UInt8(ascii: "/") { parent.removeLast() }
        self.parent = parent
        path = parent == "/" ? "/\(name)" : "\(parent)/\(name)"
        guard let information = SystemCall.status(path) else { return }
        guard information.st_mode & S_IFMT == S_IFDIR else {
            throw .usage(
                "ledgers",
                "\(path) would be the campaign's folder, but a file with this "
                    + "name exists: choose another folder")
        }
        guard try !OutputRule.isLedger(path) else {
            throw .usage(
                "ledgers",
                "\(path) would be the campaign's folder, but it is itself a "
                    + "ledger: choose another folder")
        }
    }

    /// Name of the campaign's folder. Invalid characters are refused. If they were replaced, two
    /// campaigns could share a folder.
    private static func name(_ options: NightOptions) throws(BroadsideError) -> String {
        if let name = options.send.name {
            guard isFolderName(name) else {
                throw .usage(
                    "name",
                    "'\(name)' can't be the name of a folder for ledgers: write "
                        + "it without '/', without a dot at its start, without blanks "
                        + "at its start or end, and without invisible characters")
            }
            return name
        }
        let file = options.campaign.parts(atLast: "/").map { String($0.behind) } ?? options.campaign
        var name = file[...]
        for suffix in [".json5", ".json"] where name.hasSuffix(suffix) {
            name = name.dropLast(suffix.count)
            break
        }
        // The name of a shell's <(...) differs with each start.
        let isFile = FileIdentity(path: options.campaign)?.isRegular == true
        guard isFile, isFolderName(String(name)) else {
            throw .usage(
                "campaign",
                "\(options.campaign): a folder of ledgers can't have this file's name: add --name TEXT"
            )
        }
        return String(name)
    }

    private static func isFolderName(_ name: String) -> Bool {
        !name.isEmpty && name.utf8.count <= nameByteLimit && !name.hasPrefix(".")
            && !name.first!.isWhitespace && !name.last!.isWhitespace
            && !name.unicodeScalars.contains { $0 == "/" || ForeignText.isInvisible($0) }
    }

    /// Creates the folder durably if it does not exist.
    func make() throws(BroadsideError) {
        if SystemCall.mkdir(path, 0o755) == 0 {
            warnOfSimilarName("stop this start, and write --name as before")
        } else if errno != EEXIST {
            throw .file(option: "ledgers", path, errno: errno, "name a folder to write to")
        }
        guard syncFolder(parent) else {
            throw BroadsideError(
                "\(parent) can't be synced: \(describe(errno: errno))", exitCode: ExitCode.disk)
        }
    }

    /// Warns like `make`, but creates nothing.
    func checkName() {
        guard SystemCall.status(path) == nil, errno == ENOENT else { return }
        warnOfSimilarName("write --name as before")
    }

    /// Warns if the folder is new, and another campaign's name differs only in upper and lower case.
    ///
    /// - Parameter remedy: What to do if it is the same campaign.
    private func warnOfSimilarName(_ remedy: String) {
        let similar = (SystemCall.names(inDirectory: parent) ?? []).filter {
            $0 != name && $0.lowercased() == name.lowercased()
        }
        guard let other = similar.min() else { return }
        standardErrorLine(
            "broadside: warning: '\(name)' is a new campaign, which goes to its whole list, although "
                + "\(parent) has nights of '\(printable(other))': if it is the same campaign, "
                + remedy)
    }

    func ledger(_ date: NightDate) -> String { "\(path)/\(date)" }

    /// Path to which messages advise to rename the ledger of a night that is not to be continued.
    private func ended(_ date: NightDate) -> String { "\(ledger(date))-ended" }

    // MARK: The other nights

    /// Dates for which this folder has a ledger, oldest first.
    func ledgerDates() throws(BroadsideError) -> [NightDate] {
        guard let names = SystemCall.names(inDirectory: path) else {
            if errno == ENOENT { return [] }
            throw .file(option: "ledgers", path, errno: errno, "name a folder that you may read")
        }
        var dates: [NightDate] = []
        for name in names {
            guard let date = NightDate(name), try isDirectoryPath(ledger(date)),
                try LedgerDirectory.isBegunLedger(ledger(date))
            else { continue }
            dates.append(date)
        }
        return dates.sorted()
    }

    /// Refuses a ledger of another night that was copied or moved to this night's path. Without this
    /// check, the night would count as sent.
    func refuseMisplaced(_ date: NightDate, _ history: NightHistory) throws(BroadsideError) {
        guard history[date]?.state != .begun, let own = manifest(of: date) else { return }
        let copied = try ledgerDates().first { other in
            other != date && manifest(of: other)?.campaignNumber == own.campaignNumber
        }
        // If the ledger was moved, the night on which it began has none.
        let begun = NightDate(localDayOf: own.firstStartedAtMilliseconds)
        let moved = begun.flatMap { begun in
            begun != date && history[begun]?.state == .begun && manifest(of: begun) == nil
                ? begun : nil
        }
        guard let other = copied ?? moved else { return }
        throw .usage(
            "ledgers",
            "\(ledger(date)) is the ledger of the night of \(other), so nothing is sent: move it to "
                + "\(copied == nil ? ledger(other) : "another folder")")
    }

    /// Manifest of a night's ledger; nil if there is none, or if it can't be read.
    private func manifest(of date: NightDate) -> Manifest? {
        try? LedgerDirectory.unlocked(ledger(date)).readManifest()
    }

    /// Refuses to begin a night if the folder of all campaigns has a ledger whose name is the
    /// night's date. A script that uses dates as names may have created that ledger for this
    /// campaign.
    func refuseElsewhere(_ date: NightDate) throws(BroadsideError) {
        let other = parent == "/" ? "/\(date)" : "\(parent)/\(date)"
        guard try LedgerDirectory.isBegunLedgerIfThere(other),
            try !LedgerDirectory.isBegunLedgerIfThere(ledger(date))
        else { return }
        throw .usage(
            "ledgers",
            "\(other) is already a ledger for that date, but this night would "
                + "use \(ledger(date)): move the existing ledger to that path if it belongs to "
                + "this campaign, or name another folder")
    }

    /// Checks the ledgers of other nights. Refuses to begin while one of these nights is sending,
    /// and warns about earlier nights with remaining rows.
    ///
    /// - Parameters:
    ///   - options: Options of the campaign.
    ///   - now: Current time, in milliseconds.
    ///   - mayRun: Whether this start is allowed while another night sends. Set this only if this
    ///     start sends nothing.
    func checkOthers(
        than date: NightDate, _ options: SendOptions, at now: UInt64, mayRun: Bool = false
    ) throws(BroadsideError) {
        var unfinished: [NightDate] = []
        var isLate = false
        for other in try ledgerDates() where other != date {
            guard let reader = try? LedgerReader(path: ledger(other)) else {
                standardErrorLine(
                    "broadside: warning: \(ledger(other)) can't be read: run "
                        + "broadside ledger verify --ledger "
                        + "\(shellWord(ledger(other))) to see why")
                continue
            }
            if reader.manifest.isWholeListFinished { continue }
            guard !reader.directory.isInUse else {
                if mayRun { continue }
                throw BroadsideError(
                    option: "ledgers",
                    "\(ledger(other)): the night of \(other) is still running: "
                        + "wait until it ends, or end it with broadside control "
                        + "--ledger \(shellWord(ledger(other))) stop",
                    exitCode: ExitCode.inUse)
            }
            guard other < date else { continue }
            unfinished.append(other)
            let start = reader.manifest.firstStartedAtMilliseconds
            isLate = options.deadline.map { start + $0 / millisecond <= now } ?? false
        }
        if let warning = warning(of: unfinished, hasCap: options.cap != nil, isLate: isLate) {
            standardErrorLine(warning)
        }
    }

    /// Warning about earlier nights with remaining rows; nil if there are none.
    ///
    /// A ledger that is renamed within the folder is no longer a night, but `--skip-dead` and
    /// `--history` still find it.
    ///
    /// - Parameters:
    ///   - unfinished: Dates of these nights, oldest first.
    ///   - hasCap: Whether the campaign has `--cap`.
    ///   - isLate: Whether the options have a deadline that has passed for the latest of these
    ///     nights.
    func warning(of unfinished: [NightDate], hasCap: Bool, isLate: Bool) -> String? {
        guard let last = unfinished.last else { return nil }
        let names = Self.names(unfinished)
        let isOne = unfinished.count == 1
        let words =
            isOne
            ? (night: "night of \(names) is", verb: "is not continued", rest: "it")
            : (night: "nights of \(names) are", verb: "are not continued", rest: "the latest")
        // The cap of a night counts up to the night's first start.
        let both =
            hasCap
            ? " (--cap does not count what devices got after that night began, so devices may get "
                + "both nights' notifications)" : ""
        let deadline =
            isLate
            ? ", and with a later --deadline, or without one, because that night's has passed" : ""
        let remedy =
            isOne
            ? "if it is not to be sent any more, rename \(ledger(last)) to \(ended(last))"
            : "if a night is not to be sent any more, rename its ledger, such as \(ledger(last)) to "
                + ended(last)
        return "broadside: warning: the \(words.night) not complete, and \(words.verb) by this "
            + "start: to send the rest of \(words.rest), run the same command with --date "
            + "\(last)\(deadline)\(both); \(remedy), where --skip-dead and --history still find it"
    }

    /// Warns if the latest night before a new one has no ledger in this folder.
    ///
    /// Ledgers of older nights may be archived, so they are not missed.
    func warnOfMissing(
        before date: NightDate, _ history: NightHistory, _ options: SendOptions
    ) throws(BroadsideError) {
        guard let night = history.latestBegun(before: date), night.state == .begun else { return }
        for path in [ledger(night.date), ended(night.date)] {
            if try LedgerDirectory.isBegunLedgerIfThere(path) { return }
        }
        let users = options.optionsUsing(ledgersIn: path).joined(separator: " and ")
        let verb = users.contains(" ") ? "lack" : "lacks"
        standardErrorLine(
            "broadside: warning: the night of \(night.date) was started, but its ledger "
                + "\(ledger(night.date)) is gone: rows of it may remain unsent"
                + (users.isEmpty ? "" : ", and \(users) \(verb) its reports")
                + ": put the ledger back, unless you moved it on purpose")
    }

    /// Warns if a night begins, although the latest night before it was started and never sent. The
    /// start may be a repeat for that night.
    func warnOfUnsent(before date: NightDate, _ history: NightHistory) throws(BroadsideError) {
        guard let unsent = history.latestUnsent(before: date),
            try !LedgerDirectory.isBegunLedgerIfThere(ledger(unsent))
        else { return }
        standardErrorLine(
            "broadside: warning: the night of \(unsent) was started, but never sent, and this start "
                + "begins the night of \(date), after which a further start on \(date) sends "
                + "nothing: to send the night of \(unsent) instead, stop this start, and run the "
                + "same command with --date \(unsent)")
    }

    /// Returns a text with the latest dates, and the number of the other dates.
    private static func names(_ dates: [NightDate]) -> String {
        let rest = dates.count - namedLimit
        return dates.suffix(namedLimit).reversed().map(\.description).joined(separator: ", ")
            + (rest > 0 ? " and \(rest) more" : "")
    }

    // MARK: Pages

    /// Paths of a night's page and of the page about all nights; nil if either page is missing.
    func pages(of date: NightDate) -> String? {
        let paths = ["\(ledger(date))/\(LedgerDirectory.pageName)", "\(path)/index.html"]
            .filter { (try? fileExists($0)) == true }
        return paths.count == 2 ? paths.map { printable($0) }.joined(separator: ", ") : nil
    }

    /// Writes the page about a night from its ledger, if the latest run has not written one, because
    /// it was killed or its disk was full. A failure does not affect the exit code.
    func writeMissingPage(of date: NightDate) {
        let path = ledger(date)
        do throws(BroadsideError) {
            guard try LedgerDirectory.isBegunLedger(path) else { return }
            let file = "\(path)/\(LedgerDirectory.pageName)"
            guard !Self.isUpToDate(file, of: path) else { return }
            let page = try LedgerReader(path: path).reportPage(isOurs: true)
            try LedgerDirectory.writePage(page, into: path)
        } catch {
            warn(error)
        }
    }

    /// Whether a page was written after the ledger's manifest, which each run writes when it begins
    /// and when it ends.
    private static func isUpToDate(_ page: String, of ledger: String) -> Bool {
        guard let written = SystemCall.status(page)?.st_mtim,
            let changed = SystemCall.status("\(ledger)/\(LedgerDirectory.manifestName)")?.st_mtim
        else { return false }
        return (changed.tv_sec, changed.tv_nsec) <= (written.tv_sec, written.tv_nsec)
    }

    /// Writes the page about all nights after the night of a date has ended.
    func writeIndex(after date: NightDate) {
        do throws(BroadsideError) {
            guard try !ledgerDates().isEmpty else { return }
            let file = "\(path)/index.html"
            let report = try NightsReport(
                LedgerCollection([path], option: "ledgers"), own: ledger(date))
            try report.write(to: OutputFile(file, option: "ledgers"), at: file)
        } catch {
            warn(error)
        }
    }

    private func warn(_ error: BroadsideError) {
        // After a second stop signal, the page is skipped without a warning.
        guard error.exitCode != ExitCode.rowsRemain else { return }
        standardErrorLine("broadside: warning: a report page was not written: \(error.message)")
    }

    // MARK: Removal

    /// Path to which a night's ledger is renamed before it is removed.
    private func hidden(_ date: NightDate) -> String { "\(path)/.\(date).removed" }

    /// Removes the ledgers of finished nights, except the newest ones. Warns about ledgers that
    /// can't be removed.
    ///
    /// - Returns: Dates whose ledgers were removed, oldest first.
    /// - Parameters:
    ///   - count: Number of latest dates that keep their ledgers, regardless of the nights'
    ///     outcomes.
    ///   - sent: Night that was just sent; its ledger remains until the next night has been sent.
    func removeOld(keeping count: Int, sent: NightDate, _ notes: NightNotes) -> [NightDate] {
        assert(count > 0, "the newest is never removed")
        var removed: [NightDate] = []
        do throws(BroadsideError) {
            let dates = try ledgerDates()
            for date in dates.dropLast(max(1, count)) {
                // Ledgers without a note were not created by this command, so they remain.
                guard date != sent, notes.history[date]?.state == .begun else { continue }
                let refusal = try LedgerDirectory.hideFinished(ledger(date), as: hidden(date))
                guard refusal == nil else {
                    if refusal == .unfinished, try LedgerReader(path: ledger(date)).isFinished {
                        standardErrorLine(
                            "broadside: warning: \(ledger(date)) is kept, because --limit left rows "
                                + "of its list unsent: remove this ledger if these rows need not "
                                + "be sent")
                    }
                    if case .holds(let file) = refusal {
                        standardErrorLine(
                            "broadside: warning: \(ledger(date)) is kept, "
                                + "because \(file) in it is not part of the ledger: "
                                + "move that file elsewhere")
                    }
                    continue
                }
                try finishRemoval(of: date, notes)
                removed.append(date)
            }
        } catch {
            standardErrorLine("broadside: warning: --keep: \(error.message)")
        }
        return removed
    }

    /// Prints the nights whose ledgers were removed.
    func reportRemoved(_ dates: [NightDate], keeping count: Int) {
        standardErrorLine(
            "--keep \(count) removed \(dates.count == 1 ? "1 ledger" : "\(grouped(dates.count)) ledgers"): "
                + Self.names(dates))
    }

    /// Warns if the next night would use one of the removed ledgers.
    ///
    /// - Parameters:
    ///   - date: The night that was just sent.
    ///   - memory: Options that use reports of earlier nights, the one with the oldest reports
    ///     first.
    func warnOfForgotten(
        _ removed: [NightDate], keeping count: Int, sent date: NightDate,
        _ memory: [SendOptions.Memory]
    ) {
        let day: UInt64 = 86_400_000
        guard let latest = removed.last else { return }
        let age = (date.days(since: latest) + 1) * day
        let needing = memory.filter { age < $0.milliseconds }
        guard let longest = needing.first else { return }
        let needs = needing.map {
            "\($0.option) needs the reports of the nights of the last "
                + durationText(Double($0.milliseconds) / 1000)
        }
        let enough = (longest.milliseconds + day - 1) / day
        standardErrorLine(
            "broadside: warning: --keep \(count) is too low: \(needs.joined(separator: ", and ")), "
                + "but the ledger of \(latest) was removed: --keep \(enough) keeps enough ledgers if "
                + "the campaign runs every night")
    }

    /// Continues removals that were interrupted because the process was killed.
    func finishRemovals(_ notes: NightNotes) {
        for name in SystemCall.names(inDirectory: path) ?? [] {
            guard name.hasPrefix("."), name.hasSuffix(".removed"),
                let date = NightDate(String(name.dropFirst().dropLast(8)))
            else { continue }
            do throws(BroadsideError) {
                try finishRemoval(of: date, notes)
            } catch {
                standardErrorLine("broadside: warning: \(hidden(date)): \(error.message)")
            }
        }
    }

    /// Records the removal in the notes, and then removes the hidden ledger. Without the note, a
    /// night without a ledger would count as lost.
    private func finishRemoval(of date: NightDate, _ notes: NightNotes) throws(BroadsideError) {
        if notes.history[date]?.state != .removed {
            try notes.add(.removed, of: date, at: Clock.now().wallMilliseconds)
        }
        try LedgerDirectory.removeHidden(hidden(date))
    }
}
