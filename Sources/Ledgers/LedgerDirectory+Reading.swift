package import BroadsideLedgerFormat
package import BroadsideSupport
internal import Glibc

// What is read of a ledger's directory, through its descriptor. A link there is nothing that a run made:
// what it leads to may be anybody's.

extension LedgerDirectory {
    /// Opens a file of the directory to be read; follows no link, and waits for no pipe.
    func openFile(_ name: String) throws(BroadsideError) -> Int32 {
        if let descriptor = try openFileUnlessMissing(name) { return descriptor }
        throw BroadsideError("\(path)/\(name): \(describe(errno: ENOENT))", exitCode: 5)
    }

    /// The same; nil where no file has that name.
    func openFileUnlessMissing(_ name: String) throws(BroadsideError) -> Int32? {
        try withFolder { () throws(BroadsideError) in try openFileInFolder(name) }
    }

    /// Has the directory open for the time of a call. Who only reads does not keep it open: a command may
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
                "\(path) was replaced by another directory while it was read: read it again",
                exitCode: 5)
        }
        identity = found
        return try body()
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
                "\(path)/\(name) is not a regular file, so no run made it: find out who did, and remove "
                    + "it")
        }
        return descriptor
    }

    /// So often a manifest is read again because runs began meanwhile.
    private static let newerManifestsLimit = 8

    /// All segments that lie here, and a manifest that knows them. A run enters itself into the manifest
    /// before it makes its segments, so a manifest that was read before that is older than they are.
    ///
    /// Each segment knows how much of it was on disk before rows were sent, where the claim beside the
    /// ledger tells it.
    ///
    /// - Parameter manifest: The ledger's, as it was read.
    /// - Returns: The same manifest unless a newer one knows more of the segments.
    package func segments(
        knownTo manifest: Manifest
    ) throws(BroadsideError) -> (manifest: Manifest, segments: [LedgerSegment]) {
        var manifest = manifest
        // Before the segments are looked up, which grow while a run goes on.
        let durable = durablePositions(manifest)
        var segments = try segments()
        for _ in 0..<Self.newerManifestsLimit {
            let known = Set(manifest.epochs.map(\.number))
            if segments.allSatisfy({ known.contains($0.epoch) }) { break }
            let newer = try readManifest()
            guard newer != manifest, newer.campaign == manifest.campaign else { break }
            manifest = newer
            // Those that it says were made by now are there.
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

    /// A small file of the directory, whole.
    package func readSmallFile(_ name: String, limit: Int) throws(BroadsideError) -> [UInt8] {
        let descriptor = try openFile(name)
        defer { close(descriptor) }
        return try readFile(
            descriptor, shownAs: InputName("\(path)/\(name)", option: "ledger"), limit: limit)
    }

    /// A file of the directory, to be read at any place.
    func fileBytes(_ name: String) throws(BroadsideError) -> FileBytes {
        try FileBytes(try openFile(name), path: "\(path)/\(name)", patience)
    }

    /// Where a list that came from standard input is to be read; nil where there is none.
    func spool() throws(BroadsideError) -> String? {
        guard try hasSpool else { return nil }
        // Opened again by its path: a process that may exchange it meanwhile may write into it as well.
        close(try openFile(Self.spoolName))
        return spoolPath
    }

    /// A path to the control socket that is short enough for a socket's address; valid while this object
    /// is there.
    ///
    /// - Parameter limit: The most bytes that it may have.
    package func controlPath(limit: Int) throws(BroadsideError) -> String {
        let direct = "\(path)/\(Self.controlName)"
        if direct.utf8.count <= limit { return direct }
        if folder < 0 { try openFolder(mustBeOwn: false) }
        return "/proc/self/fd/\(folder)/\(Self.controlName)"
    }

    /// True while a run holds the directory's lock.
    package var isInUse: Bool {
        guard let descriptor = try? openFile(Self.lockName) else { return false }
        defer { close(descriptor) }
        // Shared, and for a moment: two readers don't take each other for a run.
        guard flock(descriptor, LOCK_SH | LOCK_NB) == 0 else { return errno == EWOULDBLOCK }
        flock(descriptor, LOCK_UN)
        return false
    }

    /// What is said of a symbolic link where a file should be.
    func isLink(_ name: String) -> BroadsideError {
        .usage(
            "ledger",
            "\(path)/\(name) is a symbolic link, which no run made: find out who did, and put the file "
                + "itself there")
    }

    /// Why a ledger of a later format is not read; nil for other errors.
    static func newerVersion(_ error: LedgerError, _ path: String) -> BroadsideError? {
        guard error.code == .unsupportedVersion else { return nil }
        let what = error.segment.isEmpty ? manifestName : error.segment
        return .usage(
            "ledger",
            "\(path): \(what) was written by a newer version of broadside\(error.detail.isEmpty ? "" : " (\(error.detail))"): "
                + "this is \(broadsideVersion), use that one")
    }
}
