package import BroadsideLedgerFormat
package import BroadsideSupport
internal import Glibc

// Reads from a ledger's directory, through its descriptor. Symbolic links are not followed: no run
// creates one there, and its target may belong to anyone.

extension LedgerDirectory {
    /// Opens a file of the directory for reading, without following a link or waiting for a pipe.
    func openFile(_ name: String) throws(BroadsideError) -> Int32 {
        if let descriptor = try openFileUnlessMissing(name) { return descriptor }
        throw BroadsideError("\(path)/\(name): \(describe(errno: ENOENT))", exitCode: 5)
    }

    /// Opens a file of the directory for reading; nil if it does not exist.
    func openFileUnlessMissing(_ name: String) throws(BroadsideError) -> Int32? {
        try withFolder { () throws(BroadsideError) in try openFileInFolder(name) }
    }

    /// Opens the directory for the duration of a call. It does not stay open, because a command may
    /// read thousands of ledgers.
    func withFolder<Value>(
        _ body: () throws(BroadsideError) -> Value
    ) throws(BroadsideError) -> Value {
        if folder >= 0 { return try body() }
        try openFolder(mustBeOwn: false)
        defer {
            close(folder)
            folder = -1
        }
        let found = FileIdentity(descriptor: folder)
        guard identity == nil || found == identity else {
            throw BroadsideError(
                option: "ledger",
                "\(path) was replaced by another directory during the read: read it again",
                exitCode: 5)
        }
        identity = found
        return try body()
    }

    /// Whether this user has no permission to read a ledger: to list its directory, or to read its
    /// manifest.
    static func isClosed(_ path: String) -> Bool {
        guard SystemCall.names(inDirectory: path) != nil else { return errno == EACCES }
        let manifest = SystemCall.open(
            "\(path)/\(manifestName)", O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC)
        guard manifest < 0 else {
            close(manifest)
            return false
        }
        return errno == EACCES
    }

    private func openFileInFolder(_ name: String) throws(BroadsideError) -> Int32? {
        let descriptor = SystemCall.open(
            name, in: folder, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC)
        guard descriptor >= 0 else {
            if errno == ENOENT { return nil }
            if errno == ELOOP { throw isLink(name) }
            if errno == EACCES {
                throw .usage(
                    "ledger", "\(path)/\(name): \(describe(errno: errno)): run as its owner")
            }
            throw BroadsideError("\(path)/\(name): \(describe(errno: errno))", exitCode: 5)
        }
        guard let identity = FileIdentity(descriptor: descriptor) else {
            let code = errno
            close(descriptor)
            throw BroadsideError("\(path)/\(name): \(describe(errno: code))", exitCode: 5)
        }
        guard identity.isRegular else {
            close(descriptor)
            throw .usage(
                "ledger",
                "\(path)/\(name) is not a regular file, so no run created it: "
                    + "find out who created it, and remove it")
        }
        return descriptor
    }

    /// Maximum number of times that the manifest is read again because another run has started.
    private static let newerManifestsLimit = 8

    /// Returns all segments in the directory, and a manifest that includes them. A run adds itself
    /// to the manifest before it creates its segments. So a manifest that lacks the run of a
    /// segment is outdated, and is read again.
    ///
    /// Each segment gets its `durableByteCount` if the claim beside the ledger records it.
    ///
    /// - Parameter manifest: Manifest of the ledger, as read earlier.
    /// - Returns: The same manifest, unless a newer one includes more of the segments.
    package func segments(
        knownTo manifest: Manifest
    ) throws(BroadsideError) -> (manifest: Manifest, segments: [LedgerSegment]) {
        var manifest = manifest
        // The positions are read before the segments are listed, because segments grow during a
        // run.
        let durable = try durablePositions(manifest)
        var segments = try segments()
        for _ in 0..<Self.newerManifestsLimit {
            let known = Set(manifest.epochs.map(\.number))
            if segments.allSatisfy({ known.contains($0.epoch) }) { break }
            let newer = try readManifest()
            guard newer != manifest, newer.campaign == manifest.campaign else { break }
            manifest = newer
            // The segments that the newer manifest records as created exist, so this listing
            // includes them.
            segments = try self.segments()
        }
        for position in durable {
            let index = segments.firstIndex {
                $0.epoch == position.epoch && $0.reactor == position.reactor
            }
            guard let index else {
                let name = LedgerFormat.segmentName(
                    epoch: position.epoch, reactor: position.reactor)
                throw LedgerReader.unreadable(LedgerError(.missingSegment, segment: name), self)
            }
            segments[index].durableByteCount = position.position
        }
        return (manifest, segments)
    }

    /// Reads a small file of the directory.
    package func readSmallFile(_ name: String, limit: Int) throws(BroadsideError) -> [UInt8] {
        let descriptor = try openFile(name)
        defer { close(descriptor) }
        return try readFile(
            descriptor, shownAs: InputName("\(path)/\(name)", option: "ledger"), limit: limit)
    }

    /// Opens a file of the directory for reading at any offset.
    func fileBytes(_ name: String) throws(BroadsideError) -> FileBytes {
        try FileBytes(try openFile(name), path: "\(path)/\(name)", patience)
    }

    /// Returns the path of a list that was spooled from standard input; nil if there is none.
    func spool() throws(BroadsideError) -> String? {
        guard try hasSpool else { return nil }
        // The list is opened again by its path later. That adds no risk: a process that can replace
        // the file meanwhile could also write to it.
        close(try openFile(Self.spoolName))
        return spoolPath
    }

    /// Returns a path to the control socket that is short enough for a socket's address; valid
    /// during the lifetime of this object.
    ///
    /// - Parameter limit: Maximum length of the path in bytes.
    package func controlPath(limit: Int) throws(BroadsideError) -> String {
        let direct = "\(path)/\(Self.controlName)"
        if direct.utf8.count <= limit { return direct }
        if folder < 0 { try openFolder(mustBeOwn: false) }
        return "/proc/self/fd/\(folder)/\(Self.controlName)"
    }

    /// Whether a run holds the directory's lock.
    package var isInUse: Bool {
        guard let descriptor = try? openFile(Self.lockName) else { return false }
        defer { close(descriptor) }
        // The lock is shared and held briefly, so that readers don't mistake each other for a run.
        guard flock(descriptor, LOCK_SH | LOCK_NB) == 0 else { return errno == EWOULDBLOCK }
        flock(descriptor, LOCK_UN)
        return false
    }

    /// Returns the error for a symbolic link where a file should be.
    func isLink(_ name: String) -> BroadsideError {
        .usage(
            "ledger",
            "\(path)/\(name) is a symbolic link, which no run creates: find out "
                + "who created it, and put the file itself there")
    }

    /// Returns the error for a ledger of a later format; nil for other errors.
    static func newerVersion(_ error: LedgerError, _ path: String) -> BroadsideError? {
        guard error.code == .unsupportedVersion else { return nil }
        let what = error.segment.isEmpty ? manifestName : error.segment
        return .usage(
            "ledger",
            "\(path): \(what) was written by a newer version of broadside\(error.detail.isEmpty ? "" : " (\(error.detail))"): "
                + "this is \(broadsideVersion): use the newer version")
    }
}
