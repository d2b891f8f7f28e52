internal import BroadsideSupport
internal import Glibc

extension LedgerDirectory {
    /// File that old versions created. It contains nothing about devices.
    static let formerSecretName = "provider-token"

    /// Opens the directory for the duration of a call. It must belong to the user.
    func withOwnFolder(
        _ body: () throws(BroadsideError) -> Void
    ) throws(BroadsideError) {
        guard folder < 0 else { return try body() }
        try openFolder(mustBeOwn: true)
        assert(lockDescriptor < 0, "a ledger that is locked has its folder open")
        defer { release() }
        try body()
    }

    /// Replaces a file of the directory with the bytes that a closure writes to a descriptor.
    func replace(
        _ name: String, writing write: (Int32, String) throws(BroadsideError) -> Void
    ) throws(BroadsideError) {
        let descriptor = try createFile(name)
        defer { close(descriptor) }
        do throws(BroadsideError) {
            try write(descriptor, "\(path)/\(name)")
            try putInPlace(name, descriptor)
        } catch {
            discardFile(name)
            throw error
        }
    }

    /// Removes a file of the directory, if it exists. The removal is durable after the next sync.
    ///
    /// - Throws: Exit code 5 if the file remains.
    func eraseFile(_ name: String) throws(BroadsideError) {
        assert(folder >= 0, "files are in the open folder")
        if SystemCall.unlink(name, in: folder) != 0, errno != ENOENT {
            throw failure(name, "removed")
        }
    }

    /// Removes temporary files that were not renamed because their process was killed.
    func removeTemporaryFiles() throws(BroadsideError) {
        for name in try names() where Self.isTemporary(name) && Self.isOwn(name) {
            try eraseFile(name)
        }
        try syncDirectory()
    }

    /// Replaces the copy of the manifest, if it exists and is outdated.
    func renewManifestCopy() throws(BroadsideError) {
        guard try fileExists("\(path)/\(Self.manifestCopyName)") else { return }
        let copy = try? readSmallFile(Self.manifestCopyName, limit: Self.manifestLimit)
        let manifest = try readSmallFile(Self.manifestName, limit: Self.manifestLimit)
        if copy != manifest { try replace(Self.manifestCopyName, with: manifest) }
    }
}
