package import BroadsideLedgerFormat
package import BroadsideSupport
internal import Glibc

/// Directory of a ledger, with its manifest, its segments and its lock. Only the directory's owner
/// has access.
package final class LedgerDirectory {
    package let path: String
    /// Whether this process created the directory.
    var isNew = false
    /// Whether the ledger belongs to an earlier campaign. A run only reads such a ledger, so advice
    /// on damage does not suggest a resume.
    var isEarlier = false
    /// Whether reads of segments end on a stop signal.
    package let patience: ReadingPatience
    /// Descriptor of the lock; -1 if not locked.
    var lockDescriptor: Int32 = -1
    /// Whether the lock already records that the campaign started.
    var isMarkedBegun = false
    /// Descriptor of the directory once it is locked, so that files are created in it even if its
    /// path changes.
    var folder: Int32 = -1
    /// Identity of the directory, once it was opened.
    var identity: FileIdentity?
    /// The attempt that this process claimed; nil if it claimed none, or if no claim can be made
    /// beside this ledger.
    package internal(set) var claim: HeldClaim?

    init(path: String, patience: ReadingPatience = ReadingPatience()) {
        self.path = path
        self.patience = patience
    }

    deinit { release() }

    /// Releases the ledger, so that another process may lock it.
    func release() {
        if lockDescriptor >= 0 {
            // A process that was started at this moment has a copy of the descriptor until its
            // program begins, and a copy would keep the lock.
            flock(lockDescriptor, LOCK_UN)
            close(lockDescriptor)
        }
        if folder >= 0 { close(folder) }
        (lockDescriptor, folder) = (-1, -1)
    }

    /// Creates a directory for a new campaign, and locks it.
    ///
    /// - Parameters:
    ///   - canResume: Whether the command that calls this has the option `--resume`.
    ///   - marker: Name of a file that prevents a campaign from starting in the directory; nil for
    ///     none. The file is created before the lock. So a killed process never leaves a directory
    ///     that contains only a lock, in which a campaign could start.
    package static func create(
        _ path: String, canResume: Bool = true, marker: String? = nil
    ) throws(BroadsideError) -> LedgerDirectory {
        guard try make(path) else { throw try existing(path, canResume: canResume) }
        let directory = LedgerDirectory(path: path)
        do throws(BroadsideError) {
            if let marker { try directory.makeMarker(marker) }
            try directory.takeUpNew()
        } catch {
            if let marker {
                SystemCall.unlink("\(path)/\(marker)")
                SystemCall.rmdir(path)
            }
            throw error
        }
        assert(directory.isNew && directory.lockDescriptor >= 0, "a new ledger is locked")
        return directory
    }

    /// Creates an empty file that is durable before the lock exists.
    private func makeMarker(_ name: String) throws(BroadsideError) {
        let file = "\(path)/\(name)"
        let descriptor = SystemCall.open(file, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0o600)
        guard descriptor >= 0 else {
            throw BroadsideError("\(file): \(describe(errno: errno))", exitCode: ExitCode.disk)
        }
        close(descriptor)
        guard syncFolder(path) else { throw failure(name) }
    }

    /// Locks a directory for a campaign: creates it, or opens the directory that an earlier run
    /// left.
    ///
    /// A directory that is neither empty nor a ledger is left untouched.
    ///
    /// - Parameters:
    ///   - path: The directory.
    ///   - resumes: Whether the run continues a campaign that was started there. Otherwise the path
    ///     must not exist.
    ///   - begins: Whether the run starts a campaign if none was started there.
    /// - Throws: Exit code 2 if the directory does not match `resumes` and `begins`.
    package static func openForRun(
        _ path: String, resumes: Bool, begins: Bool = true
    ) throws(BroadsideError) -> LedgerDirectory {
        guard resumes else { return try create(path) }
        // If there is no ledger, the directory is left untouched.
        if !begins { try checkForRun(path, begins: false) }
        let directory = try takeUp(path, mayBegin: begins)
        // Before this process locked the directory, another process may have started a campaign in
        // it, or removed its preparations.
        try directory.check(begins: begins)
        if try !directory.hasManifest { try directory.prepare() }
        assert(directory.lockDescriptor >= 0, "no two runs use a ledger at once")
        return directory
    }

    /// Location of the directory, to check whether the path still leads to the same directory. Any
    /// thread may use the location.
    package var location: LedgerLocation { LedgerLocation(path: path, descriptor: folder) }

    /// Removes the preparations for a campaign that was not started after all.
    package func discardUnlessBegun() {
        guard isNew, (try? hasManifest) == false else { return }
        for name in Self.preparations where name != Self.lockName {
            SystemCall.unlink("\(path)/\(name)")
        }
        removeDirectory()
    }

    /// Removes a campaign whose list turned out to be wrong before anything was sent.
    package func discardCampaign() {
        assert(lockDescriptor >= 0, "only the process that locked a ledger removes it")
        guard let names = try? names() else { return }
        discardClaim()
        for name in names.sorted() where Self.isOwn(name) && name != Self.lockName {
            SystemCall.unlink("\(path)/\(name)")
        }
        if isNew { removeDirectory() } else { SystemCall.unlink("\(path)/\(Self.lockName)") }
    }

    /// Whether a file of this name in a ledger's directory was created by a run, by a repair, or as
    /// a report page.
    static func isOwn(_ name: String) -> Bool {
        let files = [
            manifestName, manifestCopyName, telemetryName, epochName, repairedName, pageName,
        ]
        return preparations.contains(name) || files.contains(name)
            || files.contains { ".\($0).new" == name } || name == controlName
            || LedgerFormat.parseSegmentName(name) != nil
            || isTemporary(name) && LedgerFormat.parseSegmentName(finalName(of: name)) != nil
    }

    /// Whether a file of this name is temporary: it will replace another one, unless its process
    /// was killed.
    static func isTemporary(_ name: String) -> Bool {
        name.hasPrefix(".") && name.hasSuffix(".new")
    }

    /// Name of the file that a temporary file would have replaced.
    private static func finalName(of name: String) -> String {
        String(name.dropFirst().dropLast(".new".utf8.count))
    }

    /// Opens a ledger for copying, and locks it against writers. A directory that is not a ledger
    /// is left untouched.
    static func openLedgerLocked(_ path: String) throws(BroadsideError) -> LedgerDirectory {
        let directory = try openToRead(path)
        _ = try directory.readManifest()
        try directory.lock(forWriting: false)
        return directory
    }

    /// Returns the names of all files; nil if the path is not a directory, or can't be read.
    ///
    /// - Throws: Exit code 5 if a disk fails.
    func namesUnlessUnusable() throws(BroadsideError) -> [String]? {
        do throws(BroadsideError) {
            return try names()
        } catch {
            guard error.exitCode != ExitCode.disk else { throw error }
            return nil
        }
    }

    /// Name of the file with the list, if the list was spooled from standard input.
    package static let spoolName = "tokens"
    /// Name of the file that describes the campaign and its runs.
    package static let manifestName = "manifest.json"
    /// Maximum size of a manifest in bytes.
    static let manifestLimit = 1 << 24
    /// Name of the second copy of the manifest, which a repair can use.
    package static let manifestCopyName = "manifest.copy"
    /// Name of the file with the runs' throughput and other figures, for reports.
    package static let telemetryName = "telemetry.json"
    /// Name of a run's control socket.
    package static let controlName = "control"
    /// Name of the file with the rows that are skipped, for example as suppressed or as duplicates.
    static let skipsName = "skips"

    /// The lock file: the first file that is created in a ledger, and the last one that is removed.
    /// Its text distinguishes a ledger from other directories.
    static let lockName = "lock"

    /// The files that may exist before the manifest does.
    static let preparations = [
        lockName, ".manifest.json.new", spoolName, ".\(spoolName).new", skipsName,
        ".\(skipsName).new",
    ]

    /// Path of a list that was spooled from standard input.
    var spoolPath: String { "\(path)/\(Self.spoolName)" }

    /// Whether a list was spooled into this directory.
    package var hasSpool: Bool {
        get throws(BroadsideError) { try fileExists(spoolPath) }
    }

    /// Creates a reference to a directory that is known to exist, without locking it.
    package static func unlocked(_ path: String) -> LedgerDirectory { LedgerDirectory(path: path) }

    /// Opens a directory for reading; a run may be writing to it.
    package static func openToRead(_ path: String) throws(BroadsideError) -> LedgerDirectory {
        guard let information = SystemCall.status(path) else {
            throw .file(option: "ledger", path, errno: errno, "name a ledger's directory")
        }
        guard information.st_mode & S_IFMT == S_IFDIR else {
            throw .usage("ledger", "\(path) is not a directory: name a ledger's directory")
        }
        return LedgerDirectory(path: path)
    }

    // MARK: Manifest

    /// Whether the campaign has started, that is, whether there is a manifest.
    ///
    /// - Throws: An error if this is unknown. If false were returned, a campaign could start in the
    ///   directory of a ledger that can't be read.
    package var hasManifest: Bool {
        get throws(BroadsideError) { try fileExists("\(path)/\(Self.manifestName)") }
    }

    /// Returns an error with advice if the directory had a manifest that is missing now. The lock,
    /// segments or a copy of the manifest show this. Otherwise, returns nil. No run starts in a
    /// directory that lost its manifest, because the run would send rows twice.
    func lostManifest() throws(BroadsideError) -> BroadsideError? {
        let content = try content()
        if content == .unfinished { throw unfinished }
        guard content == .lostManifest else { return nil }
        let names = try names()
        let hasCopy = names.contains(Self.manifestCopyName)
        guard hasCopy || names.contains(where: { LedgerFormat.parseSegmentName($0) != nil }) else {
            return BroadsideError(
                option: "ledger",
                "\(path) has lost its files (its lock shows that a campaign was "
                    + "started there): put the ledger back, or, if no row was sent, "
                    + "name another directory",
                exitCode: 5)
        }
        return BroadsideError(
            option: "ledger",
            "\(path): its manifest.json is missing: \(manifestAdvice(hasCopy: hasCopy))",
            exitCode: 5)
    }

    /// Advice for a ledger whose manifest is missing or damaged.
    private func manifestAdvice(hasCopy: Bool) -> String {
        let first = "put a backup of manifest.json there (any backup since the first start), then "
        return (hasCopy ? "" : first) + repairAdvice
    }

    /// Command that recovers a new ledger from the remains of this one.
    var repairAdvice: String {
        let next =
            if isEarlier {
                "; then move the damaged one elsewhere"
            } else if let date = nightDate {
                "; then move the damaged one elsewhere, rename the new one to \(date), and run the "
                    + "night's command with --date \(date)"
            } else {
                ", which you then resume"
            }
        return "broadside ledger repair --ledger \(shellWord(path)) --output "
            + "\(shellWord(path + "-repaired")) writes what is provably sound to a new ledger\(next)"
    }

    /// Name of the directory if it is the ledger of a night: the name is a date, and the directory
    /// is in a folder of the command `night`. Otherwise nil.
    package var nightDate: String? {
        guard let name = path.split(separator: "/").last, name.utf8.count == 10,
            name.split(separator: "-", omittingEmptySubsequences: false).map(\.utf8.count)
                == [4, 2, 2], name.utf8.allSatisfy({ $0 == 0x2d || $0 >= 0x30 && $0 <= 0x39 }),
            (try? fileExists("\(path)/../nights")) == true
        else { return nil }
        return String(name)
    }

    /// Message that the ledger has no tokens, because its run had `--keep-tokens no`.
    package var withoutTokens: String {
        "\(path) keeps no tokens (--keep-tokens no), so it does not show which tokens are dead or "
            + "how often each got a notification: leave this ledger out"
    }

    package func readManifest() throws(BroadsideError) -> Manifest {
        guard try hasManifest else {
            if let lost = try lostManifest() { throw lost }
            throw .request(
                try content().isPreparation
                    ? "--ledger \(path) contains no campaign yet, because its run ended before the "
                        + "first row: to begin it, send with --resume-or-begin"
                    : "--ledger \(path) contains no manifest.json, so it is not a "
                        + "ledger: name a ledger")
        }
        let bytes = try readSmallFile(Self.manifestName, limit: Self.manifestLimit)
        do {
            return try Manifest(decoding: bytes)
        } catch {
            if let newer = Self.newerVersion(error, path) { throw newer }
            // Many programs use that file name, so the directory may not be a ledger.
            let hasCopy = try names().contains(Self.manifestCopyName)
            let advice = try content() == .ledger ? ": \(manifestAdvice(hasCopy: hasCopy))" : ""
            throw BroadsideError(
                option: "ledger", "\(path)/manifest.json: \(error)\(advice)", exitCode: 5)
        }
    }

    // MARK: Segments

    /// Returns the names of all files.
    func names() throws(BroadsideError) -> [String] {
        guard let names = SystemCall.names(inDirectory: path) else {
            throw .file(option: "ledger", path, errno: errno, "name a directory that you may read")
        }
        return names
    }

    /// Returns all segments in the directory.
    package func segments() throws(BroadsideError) -> [LedgerSegment] {
        var segments: [LedgerSegment] = []
        for name in try names() {
            guard let (epoch, reactor) = LedgerFormat.parseSegmentName(name) else { continue }
            segments.append(
                LedgerSegment(
                    epoch: epoch, reactor: reactor,
                    bytes: try fileBytes(name)))
        }
        return segments.sorted { ($0.epoch, $0.reactor) < ($1.epoch, $1.reactor) }
    }

    /// Syncs the segments of earlier runs, so that this run relies only on durable records.
    package func syncSegments() throws(BroadsideError) {
        for segment in try segments() {
            guard let file = segment.bytes as? FileBytes, file.sync() else {
                throw failure(segment.name)
            }
        }
    }
}
