package import BroadsideLedgerFormat
package import BroadsideSupport
internal import Glibc

// Creation of files in a ledger's directory, through its descriptor.

extension LedgerDirectory {
    /// Opens the directory itself. If it must be the user's own, it must have mode 0700. Anyone else
    /// with write access could make a run replace files of the run's user. With read access, others
    /// could learn from sizes and times what was sent.
    ///
    /// - Parameter begins: Whether a run begins in the directory. If so, an empty one gets mode 0700.
    func openFolder(mustBeOwn: Bool, begins: Bool = false) throws(BroadsideError) {
        if folder < 0 { folder = SystemCall.open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC) }
        guard folder >= 0, let information = SystemCall.status(of: folder) else {
            throw .file(option: "ledger", path, errno: errno, "it must be readable")
        }
        guard mustBeOwn else { return }
        guard information.st_uid == geteuid() else {
            throw .usage(
                "ledger",
                "\(path) belongs to user \(information.st_uid), but this is user "
                    + "\(geteuid()): run as its owner, or copy it to a directory of "
                    + "your own")
        }
        try checkMode(information.st_mode, begins: begins)
    }

    private func checkMode(_ mode: mode_t, begins: Bool) throws(BroadsideError) {
        guard mode & Self.othersAccess != 0 else { return }
        let isEmpty = if begins { try names().isEmpty } else { isNew }
        if isEmpty { fchmod(folder, mode & 0o7777 & ~Self.othersAccess | S_IRWXU) }
        // Another start may have begun in the directory, and closed it, since its mode was read.
        if let now = SystemCall.status(of: folder)?.st_mode, now & Self.othersAccess == 0 { return }
        let advice =
            isEmpty
            ? "the file system does not allow mode 0700: mount it so that directories have this mode, "
                + "or name a ledger on another file system"
            : "chmod 0700 \(shellWord(path)), after checking what is in it"
        throw .usage(
            "ledger",
            "\(path) is open to other users (mode \(String(mode & 0o7777, radix: 8))): \(advice)")
    }

    /// Permissions that a ledger's directory must not give.
    static let othersAccess = S_IRWXG | S_IRWXO

    /// Creates a file in the directory, or replaces a file of an earlier run. Never follows a link.
    private func makeFile(_ name: String, _ access: Int32) throws(BroadsideError) -> Int32 {
        assert(folder >= 0 && !name.contains("/"), "files are in the open folder")
        if SystemCall.unlink(name, in: folder) != 0, errno != ENOENT { throw failure(name) }
        let descriptor = SystemCall.open(
            name, in: folder, access | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0o600)
        guard descriptor >= 0 else { throw failure(name) }
        return descriptor
    }

    /// Writes the manifest to a second file, syncs that file and renames it. So a whole manifest
    /// exists at any time.
    ///
    /// - Parameter isCopied: Whether to write the second copy of the manifest as well. If not, the
    ///   manifest must be saved once more before anything is sent.
    package func save(_ manifest: Manifest, isCopied: Bool = true) throws(BroadsideError) {
        assert(
            zip(manifest.epochs, manifest.epochs.dropFirst()).allSatisfy { $0.number < $1.number },
            "the numbers of epochs only grow")
        try checkClaim()
        let bytes = manifest.encoded()
        assert((try? Manifest(decoding: bytes)) != nil, "what is written can be read again")
        try replace(Self.manifestName, with: bytes)
        try markBegun()
        // Without the copy, a damaged manifest would make the ledger unusable. No run depends on
        // the copy, so its name may become durable later, with the name of the next file.
        guard isCopied else { return }
        try? replace(Self.manifestCopyName, with: bytes, syncsName: false)
    }

    /// Replaces a file of the directory atomically. Only the owner can read the new file.
    ///
    /// - Parameter syncsName: Whether the file is durable when this returns. If not, a power cut
    ///   leaves the old file or the new one.
    package func replace(
        _ name: String, with bytes: [UInt8], syncsName: Bool = true
    ) throws(BroadsideError) {
        let descriptor = try makeFile(".\(name).new", O_WRONLY)
        defer { close(descriptor) }
        var written = 0
        while written < bytes.count {
            let count = SystemCall.write(descriptor, bytes.rawSpan.extracting(written...))
            guard count > 0 else { throw failure(name) }
            written += count
            assert(written <= bytes.count, "no more is written than was asked for")
        }
        try putInPlace(name, descriptor, syncsName: syncsName)
    }

    /// Removes a file of the directory, if it exists. The removal is durable after the next sync.
    ///
    /// - Parameter name: The file's name in the directory.
    package func removeFile(_ name: String) {
        assert(folder >= 0, "files are in the open folder")
        SystemCall.unlink(name, in: folder)
    }

    /// Creates a temporary file for `putInPlace`; returns a descriptor to write to.
    func createFile(_ name: String) throws(BroadsideError) -> Int32 {
        try makeFile(".\(name).new", O_RDWR)
    }

    /// Removes a temporary file that will not be put in place.
    func discardFile(_ name: String) {
        SystemCall.unlink("\(path)/.\(name).new")
    }

    /// Renames a temporary file to its final name. If `syncsName` is true, makes the name durable.
    func putInPlace(
        _ name: String, _ descriptor: Int32, syncsName: Bool = true
    ) throws(BroadsideError) {
        assert(folder >= 0 && descriptor >= 0, "files are in the open folder")
        guard fsync(descriptor) == 0,
            SystemCall.rename(".\(name).new", name, in: folder) == 0
        else { throw failure(name) }
        if syncsName { try syncDirectory() }
    }

    /// Returns the error for a file of the directory that can't be changed.
    ///
    /// `errno` has the cause.
    ///
    /// - Parameter action: Past participle of what could not be done to the file.
    package func failure(_ name: String, _ action: String = "written") -> BroadsideError {
        let number = errno
        return BroadsideError(
            "\(path)/\(name) can't be \(action): "
                + FileFailure.message(errno: number, inUsed: "ledger"), exitCode: ExitCode.disk)
    }

    /// Makes the names of added and replaced files durable.
    ///
    /// - Throws: Exit code 5, as for any other failed write.
    package func syncDirectory() throws(BroadsideError) {
        if folder < 0 { try openFolder(mustBeOwn: false) }
        guard syncNames(in: folder) else {
            throw BroadsideError("\(path) can't be synced: \(describe(errno: errno))", exitCode: 5)
        }
    }

    /// Makes the name of a new ledger durable. Without the name, a power cut would lose the ledger,
    /// and a resume would start from the beginning.
    func syncOwnName() throws(BroadsideError) {
        guard !syncFolder("\(path)/..") else { return }
        let code = errno
        discardUnlessBegun()
        throw BroadsideError(
            "the folder of \(path) can't be synced: \(describe(errno: code))", exitCode: 5)
    }

    /// Writes a new segment's header, and waits until it is durable.
    package func writeHeader(
        _ descriptor: Int32, campaign: UInt64, epoch: UInt32, reactor: UInt16
    ) throws(BroadsideError) {
        assert(descriptor >= 0, "only an open file is written to")
        var writer = LedgerWriter(campaign: campaign, epoch: epoch, reactor: reactor)
        let name = LedgerFormat.segmentName(epoch: epoch, reactor: reactor)
        guard writer.writePending(to: descriptor) else { throw failure(name) }
        guard fsync(descriptor) == 0 else { throw failure(name) }
    }

    /// Creates a segment of a run; returns a descriptor to write to.
    package func createSegment(epoch: UInt32, reactor: UInt16) throws(BroadsideError) -> Int32 {
        assert(folder >= 0, "files are in the open folder")
        let name = LedgerFormat.segmentName(epoch: epoch, reactor: reactor)
        let descriptor = SystemCall.open(
            name, in: folder, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0o600)
        guard descriptor >= 0 else { throw failure(name) }
        return descriptor
    }
}

extension LedgerWriter {
    /// Writes all pending bytes.
    ///
    /// - Returns: false if a write fails; `errno` then has the cause.
    package mutating func writePending(to descriptor: Int32) -> Bool {
        assert(descriptor >= 0, "only an open file is written to")
        // SAFETY: the bytes are unchanged until `writeCompleted`.
        while let next = unsafe nextWrite() {
            let written = unsafe pwrite(
                descriptor, next.bytes.baseAddress, next.bytes.count, off_t(next.offset))
            guard written > 0 else { return false }
            writeCompleted(written)
        }
        return true
    }
}
