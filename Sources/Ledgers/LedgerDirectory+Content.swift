internal import BroadsideLedgerFormat
package import BroadsideSupport
internal import Glibc

// What a directory is, by what no other program writes: the text of its lock, its manifest, its segments.
// A file's name alone makes no ledger of a directory: `tokens` is what many people call their list.
//
//     nothing ──lock, with its text──> preparation ──manifest──> ledger, whose lock says so before it sends
//
// So a lock that says that a campaign was begun, and no manifest beside it, is a ledger that was lost.

extension LedgerDirectory {
    /// What a directory has in it.
    enum Content: Equatable {
        /// No file.
        case nothing
        /// What a run left that ended before its campaign was begun: nothing was sent.
        ///
        /// `isProven` is false if there is only an empty lock, as earlier versions made them: a ledger that
        /// was deleted in part may look the same.
        case preparation(isProven: Bool)
        /// The ledger of a campaign, whole or damaged.
        case ledger
        /// A ledger without its manifest.
        case lostManifest
        /// What a repair or merge left that was interrupted.
        case unfinished
        /// Files of others.
        case foreign

        var isPreparation: Bool {
            if case .preparation = self { return true }
            return false
        }
    }

    /// What a lock's text says.
    private enum LockText {
        case missing, empty, prepared, begun, foreign
    }

    /// The text of the lock of each ledger.
    private static let signature = Array("broadside ledger\n".utf8)
    /// What follows it once a manifest is on disk. Whatever is behind the text, even a part of this, says so:
    /// nothing else is written there.
    private static let begunText = Array("begun\n".utf8)
    /// A lock has less than that.
    private static let lockTextLimit = 64

    /// What the directory has in it now. Another process may be beginning a campaign there.
    func content() throws(BroadsideError) -> Content {
        let names = try names()
        guard !names.isEmpty else { return .nothing }
        let text = names.contains(Self.lockName) ? try lockText() : .missing
        let hasSegments = names.contains { LedgerFormat.parseSegmentName($0) != nil }
        // Asked after the lock was read: a manifest is there before the lock says so.
        if try hasManifest {
            // With an empty lock it may be a damaged one of an earlier version; a run can't use it then.
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
        // A start whose campaign was not begun may be taking it away at this moment.
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

    /// Whether `manifest.json` is a ledger's, of this or a later version: many programs have a file of that
    /// name.
    private func isManifestOfLedger() throws(BroadsideError) -> Bool {
        let bytes = try readSmallFile(Self.manifestName, limit: Self.manifestLimit)
        do {
            _ = try Manifest(decoding: bytes)
            return true
        } catch {
            return error.code == .unsupportedVersion
        }
    }

    /// Whether a directory is a ledger, whole, damaged or prepared, whose files no other command may write
    /// over.
    ///
    /// - Throws: Exit code 5, where a disk fails: that says nothing of what is there.
    static func isLedger(_ path: String) throws(BroadsideError) -> Bool {
        let directory = unlocked(path)
        guard let names = try directory.namesUnlessUnusable() else { return false }
        do throws(BroadsideError) {
            let content = try directory.content()
            return content != .nothing && content != .foreign
        } catch {
            guard error.exitCode != ExitCode.disk else { throw error }
            // Another user's.
            return names.contains(manifestName) && names.contains(lockName)
        }
    }

    // MARK: For a run

    /// Checks that a run may use a directory, and touches nothing.
    ///
    /// - Parameters:
    ///   - path: The directory's.
    ///   - resumes: Whether a run that was begun there continues; if not, nothing may be there.
    ///   - begins: Whether a campaign begins if none was begun there.
    /// - Throws: Exit code 2 if there is no ledger to resume; 5 if a part of it is lost.
    package static func checkForRun(
        _ path: String, resumes: Bool = true, begins: Bool
    ) throws(BroadsideError) {
        guard try fileExists(path) else {
            if begins { return }
            throw noLedger(path)
        }
        guard resumes else { throw try existing(path, canResume: true) }
        var refusal: BroadsideError?
        for _ in 0..<openingsLimit {
            do throws(BroadsideError) {
                return try openToRead(path).check(begins: begins)
            } catch {
                guard begins, error.exitCode == ExitCode.badRequest else { throw error }
                // What another start is making or taking away at this moment looks like anything.
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
        .usage("ledger", "\(path) is not empty, and it is not a ledger: name another directory")
    }

    private static func noLedger(_ path: String) -> BroadsideError {
        .usage(
            "ledger",
            "\(path) holds no ledger, and --resume begins none: put the ledger back, or, if nothing of "
                + "this campaign was ever sent, begin it with --resume-or-begin")
    }

    /// Why a directory is not made where something is.
    static func existing(
        _ path: String, canResume: Bool
    ) throws(BroadsideError) -> BroadsideError {
        guard try isDirectoryPath(path) else {
            return .usage("ledger", "\(path) is a file: name a directory that does not exist yet")
        }
        var advice = "name a new directory"
        switch try? unlocked(path).content() {
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

    /// Makes the directory known as a ledger's, and its name survive a power cut, before anything else is
    /// made in it.
    func prepare() throws(BroadsideError) {
        assert(lockDescriptor >= 0, "only a locked ledger is prepared")
        if SystemCall.status(of: lockDescriptor)?.st_size == 0 {
            try write(Self.signature)
        }
        try syncOwnName()
    }

    /// Notes in the lock that the campaign was begun: with a manifest on disk, before anything is sent. If the
    /// manifest is missing later, it was lost.
    func markBegun() throws(BroadsideError) {
        guard lockDescriptor >= 0, !isMarkedBegun else { return }
        switch try lockText() {
        case .missing, .begun, .foreign: break
        case .empty: try write(Self.signature + Self.begunText)
        case .prepared: try write(Self.begunText)
        }
        isMarkedBegun = true
    }

    /// Adds to the lock's text.
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
