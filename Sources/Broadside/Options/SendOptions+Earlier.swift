import BroadsideLedgerFormat
import BroadsideLedgers
import BroadsideLists
import BroadsideObservability
import BroadsideSupport

extension SendOptions {
    /// Default of `--dead-for`: 30 days.
    public static var defaultDeadFor: UInt64 { 30 * 86_400 * second }

    /// Maximum age of a report that a token is dead, in milliseconds. Older reports are ignored.
    /// nil: the token's registration time decides whether a report is ignored.
    private var deadForMilliseconds: UInt64? {
        registeredColumn == nil ? (deadFor ?? Self.defaultDeadFor) / millisecond : nil
    }

    /// Directories whose ledgers report dead tokens; empty: no row is skipped for that reason.
    private var deadDirectories: [String] {
        (skipDead ?? []) + [ownDeadDirectory].compactMap { $0 }
    }

    /// A night's own folder, if its ledgers report dead tokens without being named.
    private var ownDeadDirectory: String? { skipsOwnDead ? nightFolder : nil }

    /// Whether a night uses its own folder in addition to the directories of `skipDead`: unless
    /// these are none, or include it.
    var asksOwnNights: Bool {
        guard let skipDead, let nightFolder else { return true }
        let folder = normalizedPath(nightFolder)
        return !skipDead.isEmpty && !skipDead.contains { Self.isInside(folder, $0) }
    }

    /// Whether earlier ledgers can cause rows to be skipped.
    var asksEarlierLedgers: Bool { !deadDirectories.isEmpty || cap != nil }

    /// Column of registration times that the list needs, and the option that requires it.
    var registrationColumns: [(name: String, location: String)] {
        guard !deadDirectories.isEmpty, let registeredColumn else { return [] }
        return [(registeredColumn, "--registered-column")]
    }

    /// The rules about earlier ledgers, as stored in a campaign's identity; nil: none.
    var earlierRules: EarlierRules? {
        guard asksEarlierLedgers else { return nil }
        var rules = EarlierRules()
        if !deadDirectories.isEmpty {
            let own = ownDeadDirectory == nil ? [] : [EarlierRules.ownFolder]
            rules.skipDead = (Self.identities(of: skipDead ?? []) + own).sorted()
            rules.deadForMilliseconds = deadForMilliseconds
            rules.registeredColumn = registeredColumn
        }
        if let cap {
            rules.capCount = cap.count
            rules.capMilliseconds = cap.milliseconds
            rules.history = Self.identities(of: history)
        }
        return rules
    }

    /// Earlier ledgers that decide whether rows are skipped; nil: none.
    ///
    /// - Parameter topic: The campaign's topic; nil: unknown.
    func earlierLedgers(topic: String?) -> EarlierLedgers? {
        guard asksEarlierLedgers else { return nil }
        var directories: [EarlierLedgers.Directories] = []
        if let skipDead, !skipDead.isEmpty {
            directories.append(.init(option: "skip-dead", paths: skipDead, questions: .dead))
        }
        if let ownDeadDirectory {
            directories.append(
                .init(
                    option: "skip-dead", paths: [ownDeadDirectory], questions: .dead,
                    isDefault: true))
        }
        if cap != nil {
            let nights = nightFolder.map { normalizedPath($0) }
            // On the first night, there are no earlier ledgers.
            let early = history.filter { directory in
                nights.map { Self.isInside($0, directory) } == true
            }
            let others = history.filter { !early.contains($0) }
            for (paths, mayBeEmpty) in [(early, true), (others, false)] where !paths.isEmpty {
                directories.append(
                    .init(
                        option: "history", paths: paths, questions: .accepted,
                        mayBeEmpty: mayBeEmpty))
            }
        }
        return EarlierLedgers(
            EarlierVerdicts.Rules(
                skipsDead: !deadDirectories.isEmpty,
                deadForMilliseconds: deadForMilliseconds,
                registeredColumn: deadDirectories.isEmpty ? nil : registeredColumn, cap: cap,
                topic: topic, environment: tokenEnvironment.rawValue),
            directories, own: ledger, rehearsal: rehearsal)
    }

    /// Returns a function that names the server of a rehearsal, if this campaign goes to Apple, but a
    /// run of the ledger went to another server, such as to the simulator. That server's dead tokens
    /// may be alive, and what it accepted reached no device. A campaign for a relay believes all
    /// ledgers, because relays pass on what APNs says.
    private var rehearsal: @Sendable (LedgerDirectory) -> EarlierLedgers.Rehearsal? {
        guard appleEnvironment != nil else { return { _ in nil } }
        return { directory in
            let known = directory.runsByEndpoint.keys
            let others = known.filter { Self.appleEnvironment(ofEndpoint: $0) == nil }
            return others.min().map {
                EarlierLedgers.Rehearsal(
                    server: printable($0), isWhole: others.count == known.count)
            }
        }
    }

    /// Option that uses reports from earlier ledgers, and the maximum age of these reports.
    struct Memory {
        var option: String
        var milliseconds: UInt64
    }

    /// Options that use reports from a folder's ledgers up to a maximum age, the option with the
    /// oldest reports first.
    func memory(of folder: String) -> [Memory] {
        var memory: [Memory] = []
        if skipsDead(ofLedgersIn: folder), let deadForMilliseconds {
            memory.append(Memory(option: "--skip-dead", milliseconds: deadForMilliseconds))
        }
        if let cap, countsNotifications(ofLedgersIn: folder) {
            memory.append(Memory(option: "--cap", milliseconds: cap.milliseconds))
        }
        return memory.sorted { $0.milliseconds > $1.milliseconds }
    }

    /// Options that use reports from a folder's ledgers.
    func optionsUsing(ledgersIn folder: String) -> [String] {
        (skipsDead(ofLedgersIn: folder) ? ["--skip-dead"] : [])
            + (countsNotifications(ofLedgersIn: folder) ? ["--cap"] : [])
    }

    private func skipsDead(ofLedgersIn folder: String) -> Bool {
        let path = normalizedPath(folder)
        return deadDirectories.contains { Self.isInside(path, $0) }
    }

    private func countsNotifications(ofLedgersIn folder: String) -> Bool {
        let path = normalizedPath(folder)
        return cap != nil && history.contains { Self.isInside(path, $0) }
    }

    /// Warning about a cap that counts the earlier nights of a folder, and barely reaches one night
    /// too many: its period is at most an hour shorter than N days, but each night's start and its
    /// notifications are about a day after those of the night before. nil if there is none.
    ///
    /// The waves of a campaign have a warning of their own. A cap of a longer period is meant to
    /// skip nights.
    func nightlyCapWarning(of folder: String) -> String? {
        guard let cap, !delivery.isUsed, countsNotifications(ofLedgersIn: folder) else {
            return nil
        }
        let (hour, count): (UInt64, UInt64) = (3_600_000, UInt64(cap.count))
        let nights = count * 24 * hour
        guard cap.milliseconds <= nights, cap.milliseconds + hour > nights else { return nil }
        let night = count == 1 ? "the night before" : "the night \(count) days before"
        return "broadside: warning: --cap counts the last \(Self.words(cap.milliseconds)) of this "
            + "campaign's own nights. If it is sent every day, \(night) counts, too, because its "
            + "notifications are slightly younger. Then nearly all rows are skipped (FrequencyCap): "
            + "write --cap \(count)/\(count * 24 - 4)h"
    }

    /// Whether a normalized path is a directory or inside it.
    private static func isInside(_ path: String, _ directory: String) -> Bool {
        let directory = normalizedPath(directory)
        return path == directory || directory == "/" || path.hasPrefix("\(directory)/")
    }

    /// Description of the rules that skip rows because of earlier ledgers; nil: there are none.
    var earlierDescription: String? {
        var parts: [String] = []
        if !deadDirectories.isEmpty {
            let age =
                registeredColumn.map { ", unless '\(printable($0))' is later" }
                ?? deadForMilliseconds.map { " in the last \(Self.words($0))" } ?? ""
            parts.append(
                "tokens reported dead\(age), by \(deadDirectories.joined(separator: ", "))")
        }
        if let cap {
            parts.append(
                "tokens accepted \(cap.count == 1 ? "once" : "\(cap.count) times") or more in the last "
                    + "\(Self.words(cap.milliseconds)), by \(history.joined(separator: ", "))")
        }
        return parts.isEmpty ? nil : parts.joined(separator: "; ")
    }

    private static func words(_ milliseconds: UInt64) -> String {
        durationText(Double(milliseconds) / 1000)
    }

    /// Absolute paths of directories, without `.` and `..`, without duplicates, and sorted. A
    /// directory keeps its identity even if it does not exist when the run continues.
    private static func identities(of directories: [String]) -> [String] {
        Set(directories.map { normalizedPath($0) }).sorted()
    }
}
