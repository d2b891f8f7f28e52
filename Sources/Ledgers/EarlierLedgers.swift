internal import BroadsideLedgerFormat
package import BroadsideLists
package import BroadsideSupport
internal import Glibc

/// Ledgers of earlier campaigns that decide which rows a run skips: `--skip-dead`, `--history`.
package struct EarlierLedgers {
    /// Directories that an option names.
    package struct Directories: Sendable {
        package var option: String
        package var paths: [String]
        package var questions: EarlierQuestions
        /// Whether the directories are a default. Default directories may be missing or contain no
        /// ledger, as on a campaign's first night. An unreadable ledger in them is skipped.
        package var isDefault: Bool
        /// Whether the directories may be missing or contain no ledger.
        package var mayBeEmpty: Bool

        package init(
            option: String, paths: [String], questions: EarlierQuestions, isDefault: Bool = false,
            mayBeEmpty: Bool = false
        ) {
            self.option = option
            self.paths = paths
            self.questions = questions
            self.isDefault = isDefault
            self.mayBeEmpty = mayBeEmpty || isDefault
        }
    }

    /// Ledger, and the facts to read from it: dead tokens, acceptances or both.
    private struct Ledger {
        /// Path under which the ledger was found.
        var path: String
        var directory: LedgerDirectory
        var manifest: Manifest
        var questions: EarlierQuestions
        var byteCount: UInt64
        /// Whether only default directories have this ledger.
        var isDefault: Bool

        /// Order of the copies of a ledger: the newest has the greatest value.
        ///
        /// The smaller of two copies is the older one, and the larger one has all of its records,
        /// unless claims show the opposite: a newer attempt may have written nothing yet, and a
        /// repair may add records.
        var order: (Int, UInt64) { (oldCopy == nil ? 1 : 0, byteCount) }

        var oldCopy: OldCopy? { directory.oldCopy(manifest) }
    }

    /// A server whose responses do not count for the running campaign, such as the simulator's.
    package struct Rehearsal {
        /// Host and port of the server.
        package var server: String
        /// Whether all runs of the ledger went to such servers.
        package var isWhole: Bool

        package init(server: String, isWhole: Bool) {
            self.server = server
            self.isWhole = isWhole
        }
    }

    private let rules: EarlierVerdicts.Rules
    /// The directories that the user named come first. If a default directory is among them, its
    /// ledgers are opened as the user's, and an unreadable one is refused.
    private let directories: [Directories]
    /// The running campaign's ledger, which is excluded; nil if there is none.
    private let own: String?
    /// Returns the rehearsal that a ledger has for the running campaign, else nil.
    private let rehearsal: @Sendable (LedgerDirectory) -> Rehearsal?
    private let warnings = Warnings()

    /// - Parameters:
    ///   - directories: Directories of each option.
    ///   - own: The running campaign's ledger; nil if there is none.
    ///   - rehearsal: Returns the rehearsal that a ledger has for the running campaign: its server
    ///     invents dead tokens, and delivers nothing to a device.
    package init(
        _ rules: EarlierVerdicts.Rules, _ directories: [Directories], own: String?,
        rehearsal: @escaping @Sendable (LedgerDirectory) -> Rehearsal? = { _ in nil }
    ) {
        self.rules = rules
        self.directories = directories.filter { !$0.isDefault } + directories.filter(\.isDefault)
        self.own = own
        self.rehearsal = rehearsal
    }

    /// Reader of these ledgers, which is used once the campaign's number is known.
    package var reader: EarlierReader {
        EarlierReader(rules) { (campaign) throws(BroadsideError) in try read(campaign) }
    }

    /// Refuses directories without a ledger: the user who named them expects rows to be skipped.
    /// Warns about directories that may be empty.
    package func check() throws(BroadsideError) {
        let found = try paths()
        for named in directories where named.mayBeEmpty && !named.isDefault {
            guard !found.contains(where: { $0.questions == named.questions }) else { continue }
            warnings.print(
                "--\(named.option) \(named.paths.joined(separator: ", ")): there is no earlier ledger "
                    + "yet, up to \(LedgerCollection.levelsLimit) levels below, so this option skips "
                    + "no row")
        }
    }

    private func read(_ campaign: RunningCampaign) throws(BroadsideError) -> EarlierVerdicts {
        var leftOut: Set<String> = []
        while true {
            do throws(Unreadable) {
                return try read(campaign, without: leftOut)
            } catch {
                guard let path = error.ledger, !leftOut.contains(path) else { throw error.error }
                // Incomplete data of this ledger would distort the result, so all other ledgers are
                // read again without it.
                leftOut.insert(path)
                warnings.print("\(error.error.message): this ledger is ignored")
            }
        }
    }

    /// Failure to read the ledgers.
    private struct Unreadable: Error {
        let error: BroadsideError
        /// Path of the unreadable ledger, if the ledger can be skipped because it is in a default
        /// directory; nil if the run must end.
        var ledger: String?
    }

    private func read(
        _ campaign: RunningCampaign, without leftOut: Set<String>
    ) throws(Unreadable) -> EarlierVerdicts {
        let start = campaign.startedAtMilliseconds ?? Clock.now().wallMilliseconds
        let verdicts = EarlierVerdicts(rules, before: start)
        let ledgers = try ledgers(own: campaign.number, before: start, without: leftOut)
        for ledger in ledgers {
            try locating(ledger.path, ledger.questions, isDefault: ledger.isDefault) {
                () throws(BroadsideError) in
                try take(ledger, into: verdicts)
            }
            try locating(nil, ledger.questions) { () throws(BroadsideError) in
                try verdicts.checkRoom()
            }
        }
        verdicts.endFirstReading()
        let readAgain = ledgers.filter { $0.questions.contains(.dead) }
        precondition(readAgain.count == verdicts.againCount, "each ledger is known by its place")
        for (index, ledger) in readAgain.enumerated() {
            try locating(ledger.path, ledger.questions, isDefault: ledger.isDefault) {
                () throws(BroadsideError) in
                do throws(LedgerError) {
                    try verdicts.takeAgain(index)
                } catch {
                    throw LedgerReader.unreadable(error, ledger.directory)
                }
            }
        }
        try locating(nil, .dead) { () throws(BroadsideError) in try verdicts.finish() }
        warn(of: verdicts.foreignCount, ledgers)
        return verdicts
    }

    private func take(
        _ ledger: Ledger, into verdicts: EarlierVerdicts
    ) throws(BroadsideError) {
        let directory = ledger.directory
        if ledger.questions.contains(.accepted), directory.isInUse {
            warnings.print(
                "\(ledger.path): another run is sending with this ledger, and --cap does not count "
                    + "what that run sends from now on")
        }
        directory.patience.endsOnSignals = true
        let (manifest, segments) = try directory.segments(knownTo: ledger.manifest)
        do throws(LedgerError) {
            try verdicts.take(manifest, segments, ledger.questions)
        } catch {
            throw LedgerReader.unreadable(error, directory)
        }
    }

    /// Adds context to errors about a ledger: the option that named its directory, and whether the
    /// ledger can be skipped.
    ///
    /// - Parameter isDefault: Whether the ledger is in default directories only.
    private func locating<Value>(
        _ path: String?, _ questions: EarlierQuestions, isDefault: Bool = false,
        _ body: () throws(BroadsideError) -> Value
    ) throws(Unreadable) -> Value {
        do throws(BroadsideError) {
            return try body()
        } catch {
            let asking = directories.first { !$0.questions.isDisjoint(with: questions) }
            let failure = asking.map { error.attributed(to: $0.option) } ?? error
            let isLeftOut = isDefault && error.exitCode != ExitCode.rowsRemain
            throw Unreadable(error: failure, ledger: isLeftOut ? path : nil)
        }
    }

    private func warn(of foreignCount: Int, _ ledgers: [Ledger]) {
        guard foreignCount > 0 else { return }
        let count = ledgers.count { $0.questions.contains(.dead) }
        standardErrorLine(
            "broadside: warning: --skip-dead: \(foreignCount) of \(count) "
                + "ledgers \(foreignCount == 1 ? "has" : "have") another topic or "
                + "environment: tokens that only these ledgers report as dead are not skipped")
    }

    // MARK: Selection of ledgers

    /// Ledger that a directory has, and the facts to read from it.
    private struct Found {
        var path: String
        var questions: EarlierQuestions
        /// Whether the directory is a default.
        var isDefault: Bool
    }

    /// Returns the ledgers in the directories.
    private func paths() throws(BroadsideError) -> [Found] {
        let ownIdentity = own.flatMap { FileIdentity(path: $0) }
        var found: [Found] = []
        for directories in directories {
            let collection = try LedgerCollection(
                directories.paths, option: directories.option,
                mayBeEmpty: directories.mayBeEmpty)
            let others = collection.paths.filter {
                ownIdentity == nil || FileIdentity(path: $0) != ownIdentity
            }
            if directories.questions.contains(.accepted) {
                try Self.refuseClosed(
                    collection.closedLedgers + others.filter(LedgerDirectory.isClosed),
                    option: directories.option)
            }
            // The user does not know the default's directories.
            let note = directories.isDefault ? nil : collection.note(outside: own)
            for note in [note, collection.closedNote] {
                if let note { warnings.print("--\(directories.option): \(note)") }
            }
            guard !others.isEmpty || directories.mayBeEmpty else {
                throw .usage(
                    directories.option,
                    "\(directories.paths.joined(separator: ", ")) contains no "
                        + "ledger except the campaign's own: name a directory of "
                        + "earlier ledgers, or remove the option")
            }
            found += others.map {
                Found(
                    path: $0, questions: directories.questions, isDefault: directories.isDefault)
            }
        }
        return found
    }

    /// Refuses ledgers that this user has no permission to read. Without their acceptances, a cap
    /// lets devices get more notifications than it allows. Without their reports of dead tokens,
    /// only requests to a few dead tokens are wasted, so such ledgers are skipped with a warning.
    ///
    /// - Throws: Exit code 5 if there is such a ledger.
    private static func refuseClosed(
        _ paths: [String], option: String
    ) throws(BroadsideError) {
        guard !paths.isEmpty else { return }
        throw BroadsideError(
            option: option,
            "\(LedgerDirectory.listed(paths)): \(describe(errno: EACCES)), so --cap can't count what "
                + "was accepted there: make \(paths.count == 1 ? "it" : "them") readable for this "
                + "user, or move \(paths.count == 1 ? "it" : "them") out of the folder",
            exitCode: ExitCode.disk)
    }

    /// Opens ledgers. For a merged ledger, its parts are opened instead. Only one of several copies
    /// of a ledger is read.
    ///
    /// - Parameters:
    ///   - own: The running campaign's number.
    ///   - leftOut: Paths of ledgers that can't be read.
    private func ledgers(
        own: UInt64?, before start: UInt64, without leftOut: Set<String>
    ) throws(Unreadable) -> [Ledger] {
        var indices: [Key: Int] = [:]
        var ledgers: [Ledger] = []
        var rehearsals: [String: (Rehearsal, questions: EarlierQuestions)] = [:]
        let named: [Found]
        do throws(BroadsideError) {
            named = try paths()
        } catch {
            throw Unreadable(error: error)
        }
        for found in named where !leftOut.contains(found.path) {
            let opened = try locating(found.path, found.questions, isDefault: found.isDefault) {
                () throws(BroadsideError) in
                try open(found)
            }
            for opened in opened {
                var ledger = opened
                let manifest = ledger.manifest
                // A campaign that started later has no verdicts from before this campaign's start.
                guard manifest.campaignNumber != own,
                    manifest.firstStartedAtMilliseconds < start
                else { continue }
                guard try mayAsk(ledger) else { continue }
                if let rehearsal = rehearsal(ledger.directory) {
                    let path = ledger.directory.path
                    rehearsals[path] = (
                        rehearsal, ledger.questions.union(rehearsals[path]?.questions ?? [])
                    )
                    ledger.questions.remove(.dead)
                    if rehearsal.isWhole { ledger.questions.remove(.accepted) }
                    guard !ledger.questions.isEmpty else { continue }
                }
                let key = Key(
                    campaign: manifest.segmentNumber, shard: manifest.identity.shard)
                guard let index = indices[key] else {
                    indices[key] = ledgers.count
                    ledgers.append(ledger)
                    continue
                }
                let known = ledgers[index]
                if ledger.order > known.order { ledgers[index] = ledger }
                ledgers[index].questions = known.questions.union(ledger.questions)
                ledgers[index].isDefault = known.isDefault && ledger.isDefault
            }
        }
        for (path, (rehearsal, questions)) in rehearsals.sorted(by: { $0.key < $1.key }) {
            warn(of: rehearsal, path, questions)
        }
        assert(ledgers.count == indices.count, "each ledger is listed once")
        for ledger in ledgers { try checkCopy(ledger) }
        return ledgers
    }

    /// Warns of a ledger with a rehearsal. If other runs of the ledger went to Apple's servers, a cap
    /// counts all of its rows, so that no device gets more notifications than the cap allows.
    private func warn(of rehearsal: Rehearsal, _ path: String, _ questions: EarlierQuestions) {
        var (options, effects): ([String], [String]) = ([], [])
        if questions.contains(.dead) {
            options.append("--skip-dead")
            effects.append("tokens that only this ledger reports as dead are not skipped")
        }
        if questions.contains(.accepted) {
            options.append("--cap")
            effects.append(
                rehearsal.isWhole
                    ? "its rows do not count for the cap"
                    : "the rows of all its runs count for the cap")
        }
        warnings.print(
            "\(options.joined(separator: " and ")): \(rehearsal.isWhole ? "" : "a run of ")\(path) "
                + "\(rehearsal.isWhole ? "was sent" : "went") to \(rehearsal.server), not to Apple's "
                + "servers: \(effects.joined(separator: ", and "))")
    }

    /// Refuses a ledger that is an old copy if a cap counts its acceptances, because those of the
    /// newer copy are missing. Warns if the ledger only reports dead tokens.
    private func checkCopy(_ ledger: Ledger) throws(Unreadable) {
        guard let copy = ledger.oldCopy else { return }
        guard ledger.questions.contains(.accepted) else {
            warnings.print("--skip-dead \(copy.warning)")
            return
        }
        let next =
            copy.isMerged ? "merge the originals again and put the result" : "put the newest copy"
        throw Unreadable(
            error: BroadsideError(
                option: "history",
                "\(copy.problem), so --cap can't count the rows that it sent: \(next) in the place of "
                    + "this one, or move this one out of the folder",
                exitCode: ExitCode.inUse))
    }

    /// Whether a ledger has tokens. A ledger without tokens is refused if the user named its
    /// directory: otherwise the run would send rows that the user expects to be skipped.
    private func mayAsk(_ ledger: Ledger) throws(Unreadable) -> Bool {
        if ledger.manifest.identity.keepsTokens { return true }
        guard !ledger.isDefault,
            let asking = directories.first(where: {
                !$0.isDefault && !$0.questions.isDisjoint(with: ledger.questions)
            })
        else { return false }
        throw Unreadable(error: .usage(asking.option, ledger.directory.withoutTokens))
    }

    /// Opens the ledger in a directory, or the ledgers that were merged into it.
    private func open(_ found: Found) throws(BroadsideError) -> [Ledger] {
        let opened = try LedgerDirectory.openToRead(found.path)
        opened.isEarlier = true
        return try opened.ledgers().map {
            (directory, manifest) throws(BroadsideError) -> Ledger in
            directory.isEarlier = true
            let count = try directory.segments().reduce(0) { $0 + $1.bytes.byteCount }
            return Ledger(
                path: found.path, directory: directory, manifest: manifest,
                questions: found.questions, byteCount: count, isDefault: found.isDefault)
        }
    }

    /// The value that all copies of a ledger share, for recognizing them.
    private struct Key: Hashable {
        var campaign: UInt64
        var shard: CampaignIdentity.Shard?
    }

    /// The warnings that were printed. The directories may be searched several times, and each
    /// warning is printed once.
    private final class Warnings {
        private var printed: Set<String> = []

        func print(_ text: String) {
            guard printed.insert(text).inserted else { return }
            standardErrorLine("broadside: warning: \(text)")
        }
    }
}
