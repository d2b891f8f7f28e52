import BroadsideSupport
internal import Glibc

// A ledger's directory is made, then locked, and what is in it is looked at behind that: of several starts
// at one place one takes it up, and the others learn that it is in use, whatever it has written by then.

extension LedgerDirectory {
    /// So often a place is looked at again because it may be removed or made at the moment, and after
    /// such a pause.
    static let openingsLimit = 16
    static let openingPauseMicroseconds: UInt32 = 1_000
    /// So often, and each time so long, a lock is tried again: who asks whether a run is under way
    /// holds it for a moment.
    private static let lockTries = 5
    private static let lockPauseMicroseconds: UInt32 = 20_000

    /// Makes a directory for a ledger.
    ///
    /// - Returns: false where something has that name already.
    static func make(_ path: String) throws(BroadsideError) -> Bool {
        if SystemCall.mkdir(path, 0o700) == 0 { return true }
        guard errno == EEXIST else {
            throw .file(option: "ledger", path, errno: errno, "name a place to write to")
        }
        return false
    }

    /// Locks a directory that this process has made.
    func takeUpNew() throws(BroadsideError) {
        isNew = true
        do throws(BroadsideError) {
            guard try takeLock() else { throw inUse }
        } catch {
            // Not what another start has found and locked in the meantime: that is not empty.
            SystemCall.rmdir(path)
            throw error
        }
        try prepare()
    }

    /// Locks the directory of a ledger for a run. What is in it has to be looked at again behind that.
    ///
    /// - Parameter mayBegin: Whether it is made where there is none.
    static func takeUp(
        _ path: String, mayBegin: Bool
    ) throws(BroadsideError) -> LedgerDirectory {
        var refusal: BroadsideError?
        for _ in 0..<openingsLimit {
            let directory = LedgerDirectory(path: path)
            if mayBegin, try make(path) {
                try directory.takeUpNew()
                return directory
            }
            do throws(BroadsideError) {
                guard try mayBeLedger(path) else { throw foreign(path) }
                refusal = nil
            } catch {
                guard error.exitCode == ExitCode.badRequest else { throw error }
                // What another start is making or taking away at this moment looks like anything.
                refusal = error
                usleep(openingPauseMicroseconds)
                continue
            }
            if try directory.takeLock() { return directory }
        }
        throw refusal ?? LedgerDirectory(path: path).inUse
    }

    /// Whether a run may lock what is there: in a directory of other files nothing is touched.
    static func mayBeLedger(_ path: String) throws(BroadsideError) -> Bool {
        let names = try openToRead(path).names()
        if names.isEmpty { return true }
        if try isLedger(path) { return true }
        // Of a ledger that is being made the names may be those of a moment, without its first file.
        return try fileExists("\(path)/\(lockName)")
    }

    /// Locks the directory of a ledger that is there.
    ///
    /// - Parameter forWriting: Whether files will be made here, not only a lock held.
    func lock(forWriting: Bool = true) throws(BroadsideError) {
        guard try takeLock(forWriting: forWriting) else {
            throw .file(option: "ledger", path, errno: ENOENT, "name a ledger's directory")
        }
    }

    /// Locks the directory.
    ///
    /// - Returns: false where it, or its lock, was removed in the meantime.
    private func takeLock(forWriting: Bool = true) throws(BroadsideError) -> Bool {
        assert(lockDescriptor < 0, "a ledger is locked once")
        if folder < 0 { folder = SystemCall.open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC) }
        if folder < 0, errno == ENOENT { return false }
        try openFolder(mustBeOwn: forWriting)
        lockDescriptor = SystemCall.open(
            Self.lockName, in: folder, O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0o600)
        if lockDescriptor < 0, errno == EROFS, !forWriting {
            try lockToRead()
            return true
        }
        guard lockDescriptor >= 0 else {
            switch errno {
            case ENOENT: return false
            case ELOOP: throw isLink(Self.lockName)
            case let number:
                throw .file(option: "ledger", path, errno: number, "it must be writable")
            }
        }
        var code = lockNow()
        for _ in 0..<Self.lockTries where code == EWOULDBLOCK {
            usleep(Self.lockPauseMicroseconds)
            code = lockNow()
        }
        guard code != EWOULDBLOCK else { throw inUse }
        guard code == 0 else {
            // No other start can have locked it.
            if isNew { SystemCall.unlink(Self.lockName, in: folder) }
            throw cannotLock(code)
        }
        return try isLockInPlace()
    }

    /// Locks a ledger on a file system that can't be written to: a disk is made so after an error. Where
    /// the lock was never made no run can be writing.
    private func lockToRead() throws(BroadsideError) {
        lockDescriptor = SystemCall.open(
            Self.lockName, in: folder, O_RDONLY | O_NOFOLLOW | O_CLOEXEC)
        // A machine that may write to it may have it locked. Where locks don't work, none has.
        guard lockDescriptor >= 0, flock(lockDescriptor, LOCK_SH | LOCK_NB) != 0,
            errno == EWOULDBLOCK
        else { return }
        throw inUse
    }

    /// - Returns: 0, or the number of the error.
    private func lockNow() -> Int32 {
        while flock(lockDescriptor, LOCK_EX | LOCK_NB) != 0 {
            guard errno == EINTR else { return errno }
        }
        return 0
    }

    /// Whether the file that is locked is the one that the next start will find.
    private func isLockInPlace() throws(BroadsideError) -> Bool {
        guard let own = SystemCall.status(of: lockDescriptor) else { throw cannotLock(errno) }
        guard let named = SystemCall.linkStatus(Self.lockName, in: folder) else {
            guard errno == ENOENT else { throw cannotLock(errno) }
            return false
        }
        return (own.st_dev, own.st_ino) == (named.st_dev, named.st_ino)
    }

    private var inUse: BroadsideError {
        BroadsideError(
            option: "ledger", "\(path) is in use by another process: wait for its end",
            exitCode: ExitCode.inUse)
    }

    /// Why the directory can't be locked, though no other run has it.
    private func cannotLock(_ number: Int32) -> BroadsideError {
        let words =
            FileLocking.advice(errno: number, fileSystem: fileSystemType(of: lockDescriptor))
            ?? FileFailure.message(errno: number, "name a ledger on another file system")
        return BroadsideError(option: "ledger", "\(path): \(words)", exitCode: ExitCode.disk)
    }

    /// Takes the directory away, unless there is something else in it. The lock goes last: until then
    /// no other start takes the directory for one of other files, or for its own.
    func removeDirectory() {
        SystemCall.unlink("\(path)/\(Self.lockName)")
        SystemCall.rmdir(path)
    }
}
