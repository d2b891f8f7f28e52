package import BroadsideLedgerFormat
import BroadsideLists
public import BroadsideSupport
internal import BroadsideTLS
internal import Glibc

/// Implementation of `ledger merge`: combines the ledgers of a campaign's shards or parts.
public enum LedgerMerge {
    /// Ledger of a shard or a part.
    private struct Source {
        let directory: LedgerDirectory
        let manifest: Manifest
        /// Directory with the spooled list, if there is one: the ledger itself, or the merged
        /// ledger that contains it.
        let container: LedgerDirectory
    }

    /// Checks that ledgers are sound and belong to one list, or to all parts of a campaign. Then
    /// copies them into a new directory.
    ///
    /// - Parameters:
    ///   - output: The new directory.
    ///   - paths: The directories of the ledgers.
    ///   - tokens: Path of the list that was sent; nil: the paths from which the runs read it.
    /// - Returns: A human-readable description of the result.
    public static func run(
        output: String, ledgers paths: [String], tokens: String? = nil
    ) throws(BroadsideError) -> String {
        guard try !fileExists(output) else {
            throw .usage("output", "\(output) exists: name a new directory")
        }
        var ledgers: [Source] = []
        for (ledgerIndex, path) in paths.enumerated() {
            let identity = FileIdentity(path: path)
            for other in paths[..<ledgerIndex]
            where identity != nil && FileIdentity(path: other) == identity {
                throw .request("\(other) and \(path) are the same ledger: name each ledger once")
            }
            // Locked, because an active run would write to the ledger during the copy.
            let directory = try LedgerDirectory.openLedgerLocked(path)
            defer { directory.release() }
            for (ledger, manifest) in try directory.ledgers() {
                ledgers.append(
                    Source(directory: ledger, manifest: manifest, container: directory))
            }
        }
        let areParts = ledgers.contains { $0.manifest.identity.part != nil }
        let order = areParts ? try checkParts(ledgers) : try check(ledgers)
        assert(
            Set(order) == Set(ledgers.indices) && order.count == ledgers.count,
            "each ledger has one place")
        for ledger in ledgers {
            try whileLocked(ledger) { () throws(BroadsideError) in
                try verify(ledger.directory, ledger.manifest)
            }
        }
        if !areParts {
            try compareLists(order.map { ledgers[$0] }, tokens: tokens)
        } else if tokens != nil {
            throw .usage("tokens", "names one list, but each part has its own: remove it")
        }
        let unfinished = try UnfinishedLedger(at: output)
        let merged = unfinished.directory
        do throws(BroadsideError) {
            var names: [String] = []
            for (number, ledgerIndex) in order.enumerated() {
                let digits = String(number + 1)
                let zeros = String(repeating: "0", count: 4 - min(4, digits.count))
                names.append((areParts ? "part-" : "shard-") + zeros + digits)
                let copy = "\(merged.path)/\(names[number])"
                let source = ledgers[ledgerIndex]
                try whileLocked(source) { () throws(BroadsideError) in
                    try source.directory.copyLedger(to: copy)
                    // The copy of a part keeps the part's own list.
                    guard areParts, try source.directory.hasSpool else { return }
                    try source.directory.copyFile(LedgerDirectory.spoolName, to: copy)
                    try LedgerDirectory.unlocked(copy).syncDirectory()
                }
            }
            for ledger in ledgers where !areParts {
                guard try ledger.container.hasSpool else { continue }
                try ledger.container.copyFile(LedgerDirectory.spoolName, to: merged.path)
                break
            }
            try merged.syncDirectory()
            let manifests = order.map { ledgers[$0].manifest }
            let manifest =
                areParts
                ? Manifest(mergingParts: manifests, names: names)
                : Manifest(
                    campaign: randomBytes(8).reduce(0) { $0 << 8 | UInt64($1) },
                    merging: manifests, names: names)
            try merged.save(manifest)
            try unfinished.finish()
            warnOfOldCopies(order.map { ledgers[$0] }, output: output)
            return "merged \(names.count) \(areParts ? "parts" : "shards")' ledgers into \(output)"
                + (try openNote(order.map { ledgers[$0] }))
        } catch {
            throw unfinished.discard(error)
        }
    }

    /// Locks a source for the duration of a call, and checks that it has not changed since the
    /// first reading. Sources are locked one at a time, because a campaign may have more parts than
    /// a process may have open files.
    private static func whileLocked(
        _ source: Source, _ body: () throws(BroadsideError) -> Void
    ) throws(BroadsideError) {
        let container = try LedgerDirectory.openLedgerLocked(source.container.path)
        defer { container.release() }
        guard try source.directory.readManifest() == source.manifest else {
            throw BroadsideError(
                option: "ledger",
                "\(source.directory.path) was resumed while it was being merged: merge again",
                exitCode: ExitCode.inUse)
        }
        try body()
    }

    /// Prints a warning about each ledger that claims show to be an old copy.
    private static func warnOfOldCopies(_ ledgers: [Source], output: String) {
        for ledger in ledgers {
            guard let copy = ledger.directory.oldCopy(ledger.manifest) else { continue }
            standardErrorLine(
                "broadside: warning: \(copy.problem), so rows that it sent are missing in \(output): "
                    + "merge the newer copy\(copy.newer == nil ? ", if it still exists" : "")")
        }
    }

    /// Text about unfinished ledgers, on a line of its own; empty if there are none. Of an old copy,
    /// it names the newer one.
    private static func openNote(_ ledgers: [Source]) throws(BroadsideError) -> String {
        var open: [String] = []
        for ledger in ledgers where !ledger.manifest.isFinished {
            open.append(try ledger.directory.resumePath(ledger.manifest))
        }
        guard !open.isEmpty else { return "" }
        return "\nnot finished: \(LedgerDirectory.listed(open)): "
            + "resume the originals, not the copies, and merge again"
    }

    /// Compares the reserved chunks of each shard with one list. Equal sizes do not suffice,
    /// because different lists may have the same size.
    private static func compareLists(
        _ ledgers: [Source], tokens: String?
    ) throws(BroadsideError) {
        let listPaths = if let tokens { [tokens] } else { try listPaths(of: ledgers) }
        for ledgerIndex in listPaths {
            let list = try ledgers[0].manifest.openList(at: ledgerIndex)
            var other: (path: String, detail: String)?
            var isOfAny = false
            for ledger in ledgers {
                let segments = try ledger.directory.segments()
                do throws(LedgerError) {
                    let index = try LedgerIndex(segments: segments, manifest: ledger.manifest)
                    try checkChunks(of: index, in: list)
                    isOfAny = isOfAny || index.chunkCount > 0
                } catch {
                    guard error.code == .badList else {
                        throw LedgerReader.unreadable(error, ledger.directory)
                    }
                    other = other ?? (ledger.directory.path, error.detail)
                }
            }
            guard let other else { return }
            // The file matches no ledger, so it has replaced the list at this path.
            guard isOfAny || tokens != nil else { continue }
            throw .request(
                "\(other.path) belongs to another list than \(ledgerIndex): "
                    + "\(other.detail): name only ledgers of one list, or name the list "
                    + "with --tokens")
        }
        standardError(
            "broadside: warning: the list of these ledgers is no longer at its old path, so "
                + "broadside cannot check that all the ledgers belong to that list: name the list "
                + "with --tokens")
    }

    private static func checkChunks(
        of index: LedgerIndex, in list: TokenList
    ) throws(LedgerError) {
        var reader = ListPartReader(list: list)
        for chunk in 0..<index.chunkCount { try reader.check(index.chunk(chunk)) }
    }

    /// Returns the possible paths of the list.
    private static func listPaths(of ledgers: [Source]) throws(BroadsideError) -> [String] {
        var listPaths: [String] = []
        for ledger in ledgers {
            let spool = try ledger.container.spool()
            guard let path = spool ?? ledger.manifest.listPath, try fileCanBeSeen(path),
                !listPaths.contains(path)
            else { continue }
            listPaths.append(path)
        }
        return listPaths
    }

    private static func check(
        _ ledgers: [Source]
    ) throws(BroadsideError) -> [Int] {
        do throws(ShardSet.Problem) {
            return try ShardSet(ledgers.map(\.manifest)).order
        } catch {
            throw .request(error.description { ledgers[$0].directory.path })
        }
    }

    private static func checkParts(_ ledgers: [Source]) throws(BroadsideError) -> [Int] {
        do throws(PartSet.Problem) {
            return try PartSet(ledgers.map(\.manifest)).order
        } catch {
            throw .request(error.description { ledgers[$0].directory.path })
        }
    }

    private static func verify(
        _ directory: LedgerDirectory, _ manifest: Manifest
    ) throws(BroadsideError) {
        let (manifest, segments) = try directory.segments(knownTo: manifest)
        do throws(LedgerError) {
            _ = try LedgerVerification(checking: segments, manifest: manifest)
        } catch {
            throw LedgerReader.unreadable(error, directory)
        }
    }
}

extension ShardSet.Problem {
    /// One-line message: the problem, then the solution.
    func description(_ path: (Int) -> String) -> String {
        switch self {
        case .noShard(let ledgerIndex):
            "\(path(ledgerIndex)) was sent without --shard: name the ledgers of one campaign's shards"
        case .otherDivision(let ledgerIndex, let shards):
            "\(path(ledgerIndex)) and \(path(0)) divide the list differently (\(shards)): name the "
                + "ledgers of one campaign's shards, which have the same N and the same file (a "
                + "compressed list, or one from standard input, is divided by rows)"
        case .otherCampaign(let ledgerIndex, let difference):
            "\(path(ledgerIndex)) belongs to another campaign than \(path(0)): "
                + "\(difference): name the ledgers of one campaign's shards"
        case .sameShard(let first, let second):
            "\(path(first)) and \(path(second)) belong to the same shard: name "
                + "one ledger per shard"
        case .missing(let index, let count):
            "the ledger of shard \(index)/\(count) is missing: name it, too"
        case .notAdjacent(let first, let second):
            "\(path(second)) does not begin where \(path(first)) ends: they do "
                + "not belong to the same list"
        }
    }
}

extension PartSet.Problem {
    /// One-line message: the problem, then the solution.
    func description(_ path: (Int) -> String) -> String {
        switch self {
        case .noPart(let ledgerIndex):
            "\(path(ledgerIndex)) was sent without --part: name the ledgers of one campaign's parts"
        case .otherDivision(let ledgerIndex, let parts):
            "\(path(ledgerIndex)) and \(path(0)) divide the campaign differently (\(parts)): name "
                + "the ledgers of its parts, all with the same N"
        case .otherCampaign(let ledgerIndex, let difference):
            "\(path(ledgerIndex)) belongs to another campaign than \(path(0)): "
                + "\(difference): name the ledgers of one campaign's parts"
        case .samePart(let first, let second):
            "\(path(first)) and \(path(second)) belong to the same part: name "
                + "one ledger per part"
        case .sameList(let first, let second):
            "\(path(first)) and \(path(second)) were sent from lists with the "
                + "same content, but each part has its own rows: one of the ledgers "
                + "does not belong to the campaign"
        case .missing(let index, let count):
            "the ledger of part \(index)/\(count) is missing: name it, too"
        }
    }
}

extension LedgerDirectory {
    /// Returns this ledger; for a merged ledger, the ledgers of its shards or parts.
    package func ledgers() throws(BroadsideError) -> [(
        directory: LedgerDirectory, manifest: Manifest
    )] {
        let manifest = try readManifest()
        guard let shards = manifest.shards else { return [(self, manifest)] }
        var ledgers: [(directory: LedgerDirectory, manifest: Manifest)] = []
        for name in shards {
            let directory = try LedgerDirectory.openToRead("\(path)/\(name)")
            ledgers.append((directory, try directory.readManifest()))
        }
        return ledgers
    }

    /// Copies the files of a ledger into a new directory and makes them durable.
    func copyLedger(to target: String) throws(BroadsideError) {
        // The marker is created before the lock. If the process is killed, no campaign can start in
        // the incomplete copy.
        let copy = try LedgerDirectory.create(target, marker: LedgerDirectory.originName)
        try copy.markAsCopy(of: self)
        for segment in try segments() { try copyFile(segment.name, to: target) }
        // With the record, a reader of the copy notices if a run continues the original.
        if try fileExists("\(path)/\(Self.epochName)") { try copyFile(Self.epochName, to: target) }
        try copyFile("manifest.json", to: target)
        try copy.syncDirectory()
    }

    /// Copies a file into another directory.
    ///
    /// - Parameter byteCount: Number of bytes to copy, from the file's start; nil for all.
    func copyFile(
        _ name: String, to target: String, byteCount: UInt64? = nil
    ) throws(BroadsideError) {
        let source = try fileBytes(name)
        let copy = "\(target)/\(name)"
        let descriptor = SystemCall.open(copy, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0o600)
        guard descriptor >= 0 else {
            throw .output(copy, errno: errno)
        }
        defer { close(descriptor) }
        var buffer = ReadBuffer(byteCount: 1 << 18)
        var offset: UInt64 = 0
        while true {
            let count: Int
            do throws(LedgerError) {
                let left = (byteCount ?? .max) - offset
                // SAFETY: `read` stays within the room that it is given, and keeps no pointer to
                // it.
                count = try unsafe buffer.fill(limit: Int(clamping: left)) {
                    (room) throws(LedgerError) in
                    unsafe room.isEmpty ? 0 : try source.read(at: offset, into: room)
                }
            } catch {
                throw BroadsideError("\(error)", exitCode: 5)
            }
            if count == 0 { break }
            assert(
                offset + UInt64(count) <= byteCount ?? .max, "no more is copied than was asked for")
            if let number = writeWhole(buffer.bytes, to: descriptor) {
                throw .output(copy, errno: number)
            }
            offset += UInt64(count)
        }
        guard fsync(descriptor) == 0 else {
            throw .output(copy, errno: errno)
        }
    }
}
