internal import BroadsideLedgerFormat
package import BroadsideSupport
internal import Glibc

// Contents by which a directory is recognized as a ledger: the text of its lock, its manifest and
// its segments. No other program writes these. File names alone do not suffice: `tokens` is a
// common name for lists.
//
//     nothing ──lock, with its text──> preparation ──manifest──> ledger, recorded in the lock
//
// A lock that records a started campaign, without a manifest beside it, therefore belongs to a
// ledger whose manifest was lost.

extension LedgerDirectory {
    /// Contents of a directory.
    enum Content: Equatable {
        /// No files.
        case nothing
        /// Remains of a run that ended before its campaign started; nothing was sent.
        ///
        /// `isProven` is false if there is only an empty lock. Earlier versions created such locks,
        /// but a partly deleted ledger may look the same.
        case preparation(isProven: Bool)
        /// Ledger of a campaign, whole or damaged.
        case ledger
        /// Ledger without its manifest.
        case lostManifest
        /// Remains of an interrupted repair or merge.
        case unfinished
        /// The files of other programs.
        case foreign

        var isPreparation: Bool {
            if case .preparation = self { return true }
            return false
        }
    }

    /// Content of a lock.
    private enum LockText {
        case missing, empty, prepared, begun, foreign
    }

    /// Text of the lock of every ledger.
    private static let signature = Array("broadside ledger\n".utf8)
    /// The text that is appended to the lock once a manifest is on disk. Any bytes after the
    /// signature count as this text, even a part of it, because nothing else is written there.
    private static let begunText = Array("begun\n".utf8)
    /// Number of bytes to read from a lock. The text of every lock is shorter.
    private static let lockTextLimit = 64

    /// Returns the current contents. Another process may be starting a campaign in the directory.
    func content() throws(BroadsideError) -> Content {
        let names = try names()
        guard !names.isEmpty else { return .nothing }
        let text = names.contains(Self.lockName) ? try lockText() : .missing
        let hasSegments = names.contains { LedgerFormat.parseSegmentName($0) != nil }
        // Checked after reading the lock, because the manifest exists before the lock records it.
        if try hasManifest {
            // An empty lock may belong to a damaged ledger of an earlier version. A run can't use
            // that ledger.
            guard text == .missing || text == .foreign, !hasSegments else { return .ledger }
            return try isManifestOfLedger() ? .ledger : .foreign
        }
        if names.contains(Self.unfinishedName) { return .unfinished }
        if text == .begun || hasSegments || names.contains(Self.manifestCopyName) {
            return .lostManifest
        }
        let hasOthers = names.contains { !Self.preparations.contains($0) }
        if text == .prepared, !hasOthers { return .preparation(isProven: true) }
        if text == .empty, names == [Self.lockName] { return .preparation(isProven: false) }
        return .foreign
    }

    private func lockText() throws(BroadsideError) -> LockText {
        // Another start may be removing the lock, because its campaign did not begin.
        guard let descriptor = try openFileUnlessMissing(Self.lockName) else { return .missing }
        defer { close(descriptor) }
        var room = [UInt8](repeating: 0, count: Self.lockTextLimit)
        let count = SystemCall.read(descriptor, &room)
        guard count >= 0 else {
            throw BroadsideError(
                "\(path)/\(Self.lockName): \(describe(errno: errno))", exitCode: 5)
        }
        let text = room.prefix(count)
        if text.isEmpty { return .empty }
        if text.elementsEqual(Self.signature) { return .prepared }
        return text.starts(with: Self.signature) ? .begun : .foreign
    }

    /// Whether `manifest.json` is a ledger's manifest, of this or a later version. Many programs
    /// use that file name.
    private func isManifestOfLedger() throws(BroadsideError) -> Bool {
        let bytes = try readSmallFile(Self.manifestName, limit: Self.manifestLimit)
        do {
            _ = try Manifest(decoding: bytes)
            return true
        } catch {
            return error.code == .unsupportedVersion
        }
    }

    /// Whether a directory is a ledger: whole, damaged, or prepared for a campaign. No other
    /// command may overwrite its files.
    ///
    /// - Throws: Exit code 5 if a disk fails, because the contents are unknown then.
    static func isLedger(_ path: String) throws(BroadsideError) -> Bool {
        let directory = unlocked(path)
        guard let names = try directory.namesUnlessUnusable() else { return false }
        do throws(BroadsideError) {
            let content = try directory.content()
            return content != .nothing && content != .foreign
        } catch {
            guard error.exitCode != ExitCode.disk else { throw error }
            // This user has no permission to read the files, so the ledger may be another user's.
            return names.contains(manifestName) && names.contains(lockName)
        }
    }

    // MARK: For a run

    /// Checks that a run may use a directory, without changing anything.
    ///
    /// - Parameters:
    ///   - path: The directory.
    ///   - resumes: Whether the run continues a campaign that was started there. Otherwise the path
    ///     must not exist.
    ///   - begins: Whether the run starts a campaign if none was started there.
    /// - Throws: Exit code 2 if there is no ledger to resume; 5 if some of the ledger is lost.
    package static func checkForRun(
        _ path: String, resumes: Bool = true, begins: Bool
    ) throws(BroadsideError) {
        guard try fileExists(path) else {
            if begins { return }
            throw noLedger(path)
        }
        guard resumes else { throw try existing(path, canResume: true) }
        if leadsNowhere(path) { throw brokenLink(path) }
        var refusal: BroadsideError?
        for _ in 0..<openingsLimit {
            do throws(BroadsideError) {
                return try openToRead(path).check(begins: begins)
            } catch {
                guard begins, error.exitCode == ExitCode.badRequest else { throw error }
                // Another start may be creating or removing the directory, so that its contents are
                // arbitrary.
                guard try fileExists(path) else { return }
                refusal = error
                usleep(openingPauseMicroseconds)
            }
        }
        if let refusal { throw refusal }
    }

    func check(begins: Bool) throws(BroadsideError) {
        switch try content() {
        case .ledger: try refuseCopies()
        case .preparation(isProven: true): break
        case .nothing, .preparation(isProven: false):
            guard begins else { throw Self.noLedger(path) }
        case .lostManifest:
            if let lost = try lostManifest() { throw lost }
        case .unfinished: throw unfinished
        case .foreign: throw Self.foreign(path)
        }
    }

    static func foreign(_ path: String) -> BroadsideError {
        .usage("ledger", "\(path) is neither empty nor a ledger: name another directory")
    }

    private static func noLedger(_ path: String) -> BroadsideError {
        .usage(
            "ledger",
            "\(path) contains no ledger, and --resume does not begin one: put "
                + "the ledger back, or, if no row of this campaign was sent, begin the "
                + "campaign with --resume-or-begin")
    }

    /// Whether a path is a symbolic link without a target.
    package static func leadsNowhere(_ path: String) -> Bool {
        guard let link = SystemCall.linkStatus(path), link.st_mode & S_IFMT == S_IFLNK,
            SystemCall.status(path) == nil
        else { return false }
        return errno == ENOENT || errno == ELOOP
    }

    private static func brokenLink(_ path: String) -> BroadsideError {
        .usage(
            "ledger",
            "\(path) is a symbolic link that leads nowhere: put its target back, or name another "
                + "directory")
    }

    /// Returns the error for a path that exists, although it must be new.
    static func existing(
        _ path: String, canResume: Bool
    ) throws(BroadsideError) -> BroadsideError {
        guard try isDirectoryPath(path) else {
            if leadsNowhere(path) { return brokenLink(path) }
            return .usage("ledger", "\(path) is a file: name a directory that does not exist yet")
        }
        let directory = unlocked(path)
        if directory.staysInUse { return directory.inUse }
        var advice = "name a new directory"
        switch try? directory.content() {
        case _ where !canResume: break
        case .nothing: advice += ", or add --resume-or-begin to begin in it"
        case .foreign, .unfinished: break
        default: advice += ", or add --resume to continue it"
        }
        return .usage("ledger", "\(path) exists: \(advice)")
    }

    /// Whether a file is in a ledger's directory, whatever path leads to it.
    package static func contains(_ file: String, _ ledger: String) -> Bool {
        guard let folder = FileIdentity(path: ledger), folder.isDirectory else { return false }
        return FileIdentity(path: OutputRule.parent(of: absolutePath(file))) == folder
            || FileIdentity(path: OutputRule.parent(of: file)) == folder
    }

    // MARK: The text of the lock

    /// Marks the directory as a ledger and makes its name durable. Called before anything else is
    /// created in it.
    func prepare() throws(BroadsideError) {
        assert(lockDescriptor >= 0, "only a locked ledger is prepared")
        if SystemCall.status(of: lockDescriptor)?.st_size == 0 {
            try write(Self.signature)
        }
        try syncOwnName()
    }

    /// Records in the lock that the campaign has started. Called after a manifest is on disk, and
    /// before anything is sent. If the manifest is missing later, it was lost.
    func markBegun() throws(BroadsideError) {
        guard lockDescriptor >= 0, !isMarkedBegun else { return }
        switch try lockText() {
        case .missing, .begun, .foreign: break
        case .empty: try write(Self.signature + Self.begunText)
        case .prepared: try write(Self.begunText)
        }
        isMarkedBegun = true
    }

    /// Appends to the lock's text.
    private func write(_ text: [UInt8]) throws(BroadsideError) {
        guard lseek(lockDescriptor, 0, SEEK_END) >= 0,
            SystemCall.write(lockDescriptor, text.rawSpan) == text.count,
            fsync(lockDescriptor) == 0
        else {
            let error = failure(Self.lockName)
            discardUnlessBegun()
            throw error
        }
    }
}
