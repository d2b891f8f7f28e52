package import BroadsideSupport
internal import Glibc

// A ledger's directory is created and then locked. Its contents are checked only after that. If
// several processes start a campaign in one directory, one uses it; the others report that it is in
// use, regardless of its contents.

extension LedgerDirectory {
    /// Maximum number of attempts to open a directory that another process may be creating or
    /// removing.
    static let openingsLimit = 16
    /// Pause before the next attempt to open a directory that another process may be creating or
    /// removing.
    static let openingPauseMicroseconds: UInt32 = 1_000
    /// Number of attempts to lock again if another process holds the lock. A command that checks
    /// whether a run is active holds the lock only briefly.
    private static let lockTries = 5
    /// Pause before each attempt to lock again.
    private static let lockPauseMicroseconds: UInt32 = 20_000

    /// Creates a directory for a ledger.
    ///
    /// - Returns: false if the name is already in use.
    static func make(_ path: String) throws(BroadsideError) -> Bool {
        if SystemCall.mkdir(path, 0o700) == 0 { return true }
        guard errno == EEXIST else {
            throw .file(option: "ledger", path, errno: errno, "name a place to write to")
        }
        return false
    }

    /// Locks a directory that this process has created.
    func takeUpNew() throws(BroadsideError) {
        isNew = true
        do throws(BroadsideError) {
            guard try takeLock() else { throw inUse }
        } catch {
            // Fails if another start has locked the directory meanwhile and thereby created a lock
            // file in it.
            SystemCall.rmdir(path)
            throw error
        }
        try prepare()
    }

    /// Locks the directory of a ledger for a run. The caller has to check its contents again.
    ///
    /// - Parameter mayBegin: Whether to create the directory if it does not exist.
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
                // Another start may be creating or removing the directory, so that its contents are
                // arbitrary.
                refusal = error
                usleep(openingPauseMicroseconds)
                continue
            }
            if try directory.takeLock(begins: mayBegin) { return directory }
        }
        throw refusal ?? LedgerDirectory(path: path).inUse
    }

    /// Whether a run may lock the directory. A directory with other programs' files is left
    /// untouched.
    static func mayBeLedger(_ path: String) throws(BroadsideError) -> Bool {
        let names = try openToRead(path).names()
        if names.isEmpty { return true }
        if try isLedger(path) { return true }
        // While another process creates the ledger, the list of names may be outdated and lack the
        // lock.
        return try fileExists("\(path)/\(lockName)")
    }

    /// Locks the directory of an existing ledger.
    ///
    /// - Parameter forWriting: Whether files will be created in the directory.
    func lock(forWriting: Bool = true) throws(BroadsideError) {
        guard try takeLock(forWriting: forWriting) else {
            throw .file(option: "ledger", path, errno: ENOENT, "name a ledger's directory")
        }
    }

    /// Locks the directory.
    ///
    /// - Parameters:
    ///   - forWriting: Whether files will be created in the directory.
    ///   - begins: Whether a run begins if the directory is empty.
    /// - Returns: false if the directory or its lock was removed meanwhile.
    private func takeLock(
        forWriting: Bool = true, begins: Bool = false
    ) throws(BroadsideError) -> Bool {
        assert(lockDescriptor < 0, "a ledger is locked once")
        if folder < 0 { folder = SystemCall.open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC) }
        if folder < 0, errno == ENOENT { return false }
        try openFolder(mustBeOwn: forWriting, begins: begins)
        lockDescriptor = SystemCall.open(
            Self.lockName, in: folder, O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0o600)
        if lockDescriptor < 0, errno == EROFS || errno == EACCES, !forWriting {
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
            // No other start can have locked the new directory.
            if isNew { SystemCall.unlink(Self.lockName, in: folder) }
            throw cannotLock(code)
        }
        return try isLockInPlace()
    }

    /// Locks a ledger to which this process can't write, because of its permissions or of a
    /// read-only file system. A disk may become read-only after an error. If there is no lock file,
    /// no run can be writing.
    private func lockToRead() throws(BroadsideError) {
        lockDescriptor = SystemCall.open(
            Self.lockName, in: folder, O_RDONLY | O_NOFOLLOW | O_CLOEXEC)
        // A run may hold a lock that can't be read.
        if lockDescriptor < 0, errno == EACCES {
            throw .file(option: "ledger", path, errno: errno, "its file lock must be readable")
        }
        // A machine with write access may hold the lock. If locks don't work on this file system,
        // no machine holds one.
        guard lockDescriptor >= 0, flock(lockDescriptor, LOCK_SH | LOCK_NB) != 0,
            errno == EWOULDBLOCK
        else { return }
        throw inUse
    }

    /// - Returns: 0 or the errno.
    private func lockNow() -> Int32 {
        while flock(lockDescriptor, LOCK_EX | LOCK_NB) != 0 {
            guard errno == EINTR else { return errno }
        }
        return 0
    }

    /// Whether the path of the lock file still leads to the locked file. If not, the next start
    /// would lock another file.
    private func isLockInPlace() throws(BroadsideError) -> Bool {
        guard let own = SystemCall.status(of: lockDescriptor) else { throw cannotLock(errno) }
        guard let named = SystemCall.linkStatus(Self.lockName, in: folder) else {
            guard errno == ENOENT else { throw cannotLock(errno) }
            return false
        }
        return (own.st_dev, own.st_ino) == (named.st_dev, named.st_ino)
    }

    /// Whether a run holds the lock for longer than a run that has just ended.
    var staysInUse: Bool {
        for _ in 0..<Self.lockTries {
            guard isInUse else { return false }
            usleep(Self.lockPauseMicroseconds)
        }
        return isInUse
    }

    /// Refuses a ledger that a run has locked, as a start does.
    package func refuseIfInUse() throws(BroadsideError) {
        guard !staysInUse else { throw inUse }
    }

    /// The error for a ledger that a run has locked.
    var inUse: BroadsideError {
        BroadsideError(
            option: "ledger", "\(path) is in use by another process: wait until it ends",
            exitCode: ExitCode.inUse)
    }

    /// Returns the error for a directory that can't be locked, although no other run uses it.
    private func cannotLock(_ number: Int32) -> BroadsideError {
        let words =
            FileLocking.advice(errno: number, fileSystem: fileSystemType(of: lockDescriptor))
            ?? FileFailure.message(errno: number, "name a ledger on another file system")
        return BroadsideError(option: "ledger", "\(path): \(words)", exitCode: ExitCode.disk)
    }

    /// Removes the directory unless it contains other files. The lock is removed last: as long as
    /// it exists, no other process starts a campaign in the directory, or mistakes it for a
    /// directory of another program.
    func removeDirectory() {
        SystemCall.unlink("\(path)/\(Self.lockName)")
        SystemCall.rmdir(path)
    }
}
