internal import BroadsideLedgerFormat
internal import BroadsideLedgers
import BroadsideSupport
internal import Glibc
internal import Synchronization

/// File in a campaign's folder that records which nights have begun. Each note announces a step of
/// a night, and is durable before the step is taken. The file is locked while a night runs, so only
/// one night runs at a time.
final class NightNotes: Sendable {
    /// Name of the file.
    static let name = "nights"
    /// Maximum size of the file, bytes; enough for tens of thousands of nights.
    private static let byteLimit = 1 << 22
    /// Limit on attempts to open the file, which another process may replace at that moment.
    private static let openingsLimit = 16

    private struct Content {
        var history: NightHistory
        var byteCount: Int
    }

    let path: String
    private let folder: String
    private let descriptor: Int32
    private let content: Mutex<Content>

    var history: NightHistory { content.withLock { $0.history } }

    /// Opens and locks the file of a folder, and creates it if it does not exist.
    ///
    /// - Throws: Exit code 7 if another process has locked it; 5 if it can't be used or is damaged;
    ///   2 if it belongs to another program.
    init(folder: String) throws(BroadsideError) {
        self.folder = folder
        path = "\(folder)/\(Self.name)"
        let isNew = try !fileExists(path)
        descriptor = try Self.openLocked(path, folder: folder)
        do throws(BroadsideError) {
            var content = try Self.read(descriptor, path, folder: folder, isNew: isNew)
            Self.addLedgers(of: folder, to: &content.history)
            self.content = Mutex(content)
        } catch {
            close(descriptor)
            throw error
        }
    }

    deinit {
        // A process that was started at this moment has a copy of the descriptor until its program
        // begins, and a copy would keep the lock.
        flock(descriptor, LOCK_UN)
        close(descriptor)
    }

    /// Reads the notes of a folder without a lock.
    static func history(folder: String) throws(BroadsideError) -> NightHistory {
        let path = "\(folder)/\(name)"
        var history = NightHistory()
        if try fileExists(path) {
            let bytes = try readFile(path, shownAs: InputName(path), limit: byteLimit)
            if isBegun(bytes) { try refuseLostNotes(path, folder: folder) }
            history = try parse(bytes, path, folder: folder).history
        }
        addLedgers(of: folder, to: &history)
        return history
    }

    /// Adds a note durably.
    ///
    /// - Parameter campaign: Path of the campaign's file, for `intended` and `ordered`.
    func add(
        _ note: NightHistory.Note, of date: NightDate, at milliseconds: UInt64,
        campaign: String = ""
    ) throws(BroadsideError) {
        let line = NightHistory.line(note, of: date, at: milliseconds, campaign: campaign)
        let bytes = Array(line.utf8)
        try content.withLock { (content) throws(BroadsideError) in
            guard content.byteCount + bytes.count <= Self.byteLimit else {
                throw BroadsideError(
                    "\(path) is full: name another folder with --ledgers",
                    exitCode: ExitCode.disk)
            }
            let failure = writeWhole(bytes.rawSpan, to: descriptor)
            guard failure == nil, fsync(descriptor) == 0 else {
                let code = failure ?? errno
                ftruncate(descriptor, off_t(content.byteCount))
                throw Self.failure(path, code)
            }
            content.byteCount += bytes.count
            content.history.take(note, of: date, at: milliseconds, campaign: campaign)
        }
    }

    // MARK: The file

    /// Adds the nights of a folder that have a readable ledger, but no note.
    private static func addLedgers(of folder: String, to history: inout NightHistory) {
        let dates = (SystemCall.names(inDirectory: folder) ?? []).compactMap { NightDate($0) }
        history.add(
            ledgerStarts: dates.filter { history[$0] == nil }.compactMap { date in
                let directory = LedgerDirectory.unlocked("\(folder)/\(date)")
                guard let manifest = try? directory.readManifest() else { return nil }
                return (date, manifest.firstStartedAtMilliseconds)
            })
    }

    /// Whether a file has at most a part of its first line, and no note.
    private static func isBegun(_ bytes: [UInt8]) -> Bool {
        let header = Array(NightHistory.header.utf8)
        return bytes.count < header.count && header.starts(with: bytes)
    }

    /// Refuses a folder that has nights, but no note in its file. A full disk or a power cut may
    /// have removed the notes. A folder without other entries is accepted: its first start may have
    /// ended before it wrote the file.
    private static func refuseLostNotes(
        _ path: String, folder: String
    ) throws(BroadsideError) {
        guard (SystemCall.names(inDirectory: folder) ?? []).contains(where: { $0 != name }) else {
            return
        }
        throw BroadsideError(
            option: "ledgers",
            "\(path) is empty, although \(folder) has nights: restore the file from a backup, or remove "
                + "it if each date's ledger is still in the folder, and can be read, because the "
                + "nights' starts are then taken from the ledgers", exitCode: ExitCode.disk)
    }

    private static func openLocked(
        _ path: String, folder: String
    ) throws(BroadsideError) -> Int32 {
        for _ in 0..<openingsLimit {
            let descriptor = SystemCall.open(
                path, O_RDWR | O_CREAT | O_APPEND | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC, 0o600)
            guard descriptor >= 0 else {
                throw .file(
                    option: "ledgers", path, errno: errno,
                    "the folder must belong to this user, and broadside must "
                        + "have created the file")
            }
            if let code = lock(descriptor) {
                let words = FileLocking.advice(
                    errno: code, fileSystem: fileSystemType(of: descriptor))
                close(descriptor)
                if code == EWOULDBLOCK { throw try inUse(path, folder: folder) }
                throw BroadsideError(
                    option: "ledgers", "\(path): \(words ?? describe(errno: code))",
                    exitCode: ExitCode.disk)
            }
            // Checks that the locked file is the one that the next start will open.
            let own = FileIdentity(descriptor: descriptor)
            if let own, own.isRegular, own == FileIdentity(path: path) { return descriptor }
            close(descriptor)
        }
        throw BroadsideError(
            option: "ledgers", "\(path) is not a file, or something keeps replacing it: remove it",
            exitCode: ExitCode.disk)
    }

    /// - Returns: The error number; nil if the file is locked now.
    private static func lock(_ descriptor: Int32) -> Int32? {
        while flock(descriptor, LOCK_EX | LOCK_NB) != 0 {
            guard errno == EINTR else { return errno }
        }
        return nil
    }

    private static func inUse(_ path: String, folder: String) throws(BroadsideError)
        -> BroadsideError
    {
        let bytes = try readFile(path, shownAs: InputName(path), limit: byteLimit)
        let night = (try? parse(bytes, path, folder: folder).history.latest).map {
            "the night of \($0)"
        }
        return BroadsideError(
            option: "ledgers",
            "\(path): another process is at work on \(night ?? "this campaign"): wait until it ends",
            exitCode: ExitCode.inUse)
    }

    /// Reads the file. Writes the first line if the file is empty. Removes an incomplete note at
    /// the end, because the step that it announces has not happened.
    ///
    /// - Parameter isNew: Whether the file did not exist before. A folder of nights may have been
    ///   copied from elsewhere without the file.
    private static func read(
        _ descriptor: Int32, _ path: String, folder: String, isNew: Bool
    ) throws(BroadsideError) -> Content {
        let bytes = try readFile(descriptor, shownAs: InputName(path), limit: byteLimit)
        if isBegun(bytes) {
            if !isNew { try refuseLostNotes(path, folder: folder) }
            let header = Array(NightHistory.header.utf8)
            guard ftruncate(descriptor, 0) == 0,
                SystemCall.write(descriptor, header.rawSpan) == header.count,
                fsync(descriptor) == 0, syncFolder(folder)
            else { throw failure(path, errno) }
            return Content(history: NightHistory(), byteCount: header.count)
        }
        let content = try parse(bytes, path, folder: folder)
        assert(content.byteCount <= bytes.count, "complete notes are in the file")
        if content.byteCount < bytes.count {
            guard ftruncate(descriptor, off_t(content.byteCount)) == 0, fsync(descriptor) == 0
            else { throw failure(path, errno) }
        }
        return content
    }

    /// Parses complete lines.
    private static func parse(
        _ bytes: [UInt8], _ path: String, folder: String
    ) throws(BroadsideError) -> Content {
        let header = Array(NightHistory.header.utf8)
        guard bytes.starts(with: header) else {
            if isBegun(bytes) {
                return Content(history: NightHistory(), byteCount: 0)
            }
            throw foreign(bytes, path, folder: folder)
        }
        let end = (bytes.lastIndex(of: UInt8(ascii: "\n")) ?? 0) + 1
        assert(end >= header.count, "the header ends with a line feed")
        let text = String(decoding: bytes[header.count..<end], as: UTF8.self)
        return Content(
            history: try NightHistory(Substring(text), path: path), byteCount: end)
    }

    /// Error for a file that does not begin as notes do. Something may have overwritten the notes,
    /// and in another folder, the nights that were sent would be sent again.
    private static func foreign(
        _ bytes: [UInt8], _ path: String, folder: String
    ) -> BroadsideError {
        guard !bytes.starts(with: Array(OutputRule.nightNotesMark.utf8)) else {
            return .usage(
                "ledgers",
                "\(path) is in a newer format: use the version of broadside that wrote it")
        }
        let dates = (SystemCall.names(inDirectory: folder) ?? []).compactMap { NightDate($0) }
        guard let latest = dates.max() else {
            return .usage(
                "ledgers",
                "\(path) was not written by broadside night: restore it from a backup if nights "
                    + "of this campaign were sent; otherwise, remove it or name another folder")
        }
        return .usage(
            "ledgers",
            "\(path) was not written by broadside night, although \(folder) has nights, the latest "
                + "of \(latest): restore the file from a backup, or remove it if each date's ledger "
                + "is still in the folder, and can be read, because the nights' starts are then taken "
                + "from the ledgers")
    }

    private static func failure(_ path: String, _ number: Int32) -> BroadsideError {
        BroadsideError(
            "\(path) can't be written: "
                + FileFailure.message(errno: number, inUsed: "folder"),
            exitCode: ExitCode.disk)
    }
}
