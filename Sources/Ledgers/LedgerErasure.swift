internal import BroadsideAPNs
import BroadsideLedgerFormat
public import BroadsideLists
import BroadsideRows
public import BroadsideSupport
internal import BroadsideTLS
internal import Glibc

/// Implementation of `ledger forget`: erases devices from ledgers.
public enum LedgerErasure {
    /// Erases the devices of a list from ledgers, one ledger after the other.
    ///
    /// - Parameters:
    ///   - tokens: List of the devices, or one device.
    ///   - tokenColumn: Column of the list with the tokens; nil: `token`.
    ///   - directories: Directories of ledgers, or with ledgers below them.
    ///   - isDryRun: Whether to report what would be erased, and to change nothing.
    ///   - isConfirmed: Whether to erase without a question. Only a person at a terminal is asked.
    ///   - report: Receives a line about each ledger once its erasure is durable, and a final line
    ///     about all ledgers.
    /// - Throws: Exit code 2 if the list or a directory is wrong or the person does not confirm, 5
    ///   if a disk fails, a ledger is damaged or this user has no permission to read it, 7 if another
    ///   process uses a ledger. If a ledger is the cause, the erasure from all other ledgers is
    ///   complete, and the error names all ledgers from which devices were not erased.
    public static func run(
        tokens: TokenSource, tokenColumn: String? = nil, ledgers directories: [String],
        isDryRun: Bool = false, isConfirmed: Bool = true, report: (String) -> Void
    ) throws(BroadsideError) {
        let collection = try LedgerCollection(directories, option: "ledger")
        var devices = DeviceSet()
        try read(tokens, tokenColumn, into: &devices)
        collection.warn(option: "ledger")
        let closed = collection.closedLedgers + collection.paths.filter(LedgerDirectory.isClosed)
        let paths = collection.paths.filter { !closed.contains($0) }
        let asks = !isConfirmed && isatty(STDIN_FILENO) == 1
        var failures = ErasureFailures()
        if isDryRun || asks {
            let affectedCount = try preview(paths, &devices, &failures) { line in
                if isDryRun { report(line) } else { standardError(line) }
            }
            guard !isDryRun else {
                report(
                    "\(found(devices)) in \(counted(affectedCount, "ledger")); "
                        + "dry run: nothing was changed")
                return try finish(failures, closed)
            }
            if affectedCount > 0 { try confirm(devices, affectedCount) }
        }
        for path in paths where !failures.contains(path) {
            try eachLedger(path, of: paths, &failures) { () throws(BroadsideError) in
                devices.beginLedger()
                let erasure = try Erasure(path, &devices)
                report("\(path): \(try erasure.write(&devices))")
            }
        }
        let scope = closed.isEmpty ? "" : " in the ledgers that this user may read"
        report(
            "\(found(devices))\(failures.isEmpty ? scope : " in the other ledgers"); lists, exports, summaries and backups elsewhere are "
                + "unchanged")
        try finish(failures, closed)
    }

    /// Does something with one of several ledgers. If it fails, the other ledgers follow.
    private static func eachLedger(
        _ path: String, of paths: [String], _ failures: inout ErasureFailures,
        _ body: () throws(BroadsideError) -> Void
    ) throws(BroadsideError) {
        try SignalWatch.stopIfRequested()
        do throws(BroadsideError) {
            try body()
        } catch {
            guard paths.count > 1 else { throw error }
            try failures.add(error, path)
        }
    }

    /// Reports the ledgers from which devices were not erased.
    private static func finish(
        _ failures: ErasureFailures, _ closed: [String]
    ) throws(BroadsideError) {
        guard !failures.isEmpty, !closed.isEmpty else {
            try failures.finish()
            return try refuseClosed(closed)
        }
        do throws(BroadsideError) {
            try refuseClosed(closed)
        } catch {
            standardErrorLine("broadside: \(error.message)")
        }
        try failures.finish()
    }

    /// Reports ledgers from which nothing was erased, because this user has no permission to read
    /// them.
    ///
    /// - Throws: Exit code 5 if there are such ledgers.
    private static func refuseClosed(_ paths: [String]) throws(BroadsideError) {
        guard !paths.isEmpty else { return }
        throw BroadsideError(
            option: "ledger",
            "\(LedgerDirectory.listed(paths)): \(describe(errno: EACCES)), so devices in "
                + "\(paths.count == 1 ? "this ledger" : "these ledgers") are not erased: run the same "
                + "command as \(paths.count == 1 ? "its" : "their") owner",
            exitCode: ExitCode.disk)
    }

    private static func found(_ devices: borrowing DeviceSet) -> String {
        "\(grouped(devices.foundAnywhereCount)) of "
            + "\(counted(devices.count, "device")) found"
    }

    /// Reads all ledgers, and describes what an erasure would change.
    ///
    /// - Parameter report: Receives a line about each ledger.
    /// - Returns: Number of ledgers that would change.
    private static func preview(
        _ paths: [String], _ devices: inout DeviceSet, _ failures: inout ErasureFailures,
        report: (String) -> Void
    ) throws(BroadsideError) -> Int {
        var affectedCount = 0
        for path in paths {
            try eachLedger(path, of: paths, &failures) { () throws(BroadsideError) in
                devices.beginLedger()
                let erasure = try Erasure(path, &devices)
                if erasure.isAffected { affectedCount += 1 }
                report("\(path): \(erasure.preview(devices))")
            }
        }
        return affectedCount
    }

    /// Asks a person at a terminal to confirm the erasure.
    private static func confirm(
        _ devices: borrowing DeviceSet, _ ledgerCount: Int
    ) throws(BroadsideError) {
        standardError(
            "\(found(devices)) in \(counted(ledgerCount, "ledger")). Erased devices can't be "
                + "restored. Type yes to erase them:")
        guard readLine() == "yes" else {
            throw .request("not confirmed: nothing was erased; in a script, confirm with --yes")
        }
    }

    /// Reads the devices. Each row must have a token: the erasure would miss a device whose row
    /// can't be read.
    private static func read(
        _ tokens: TokenSource, _ tokenColumn: String?, into devices: inout DeviceSet
    ) throws(BroadsideError) {
        if case .single(let token) = tokens {
            guard let digits = canonicalToken(token) else {
                throw .usage(
                    "token",
                    "'\(wordExcerpt(token))' is not a device token: write its hexadecimal digits")
            }
            _ = devices.insert(digits.rawSpan)
            return
        }
        let list = try TokenList(tokens, format: nil, tokenColumn: tokenColumn)
        var cursor = try RowCursor(list, endsOnSignals: true)
        var digits = TokenDigits()
        while let row = try cursor.next() {
            let refusal = digits.write {
                cursor.reader.readToken(cursor.reader.field(0), into: &$0)
            }
            if let refusal {
                throw .request(
                    list.name,
                    ": line \(row.line) has no device token (\(refusal.text)), so nothing was "
                        + "changed: correct that line")
            }
            guard devices.insert(digits.bytes) else {
                throw .request(
                    list.name,
                    " has more than \(grouped(DeviceSet.countLimit)) devices: divide it, and forget one "
                        + "part after the other")
            }
        }
        guard devices.count > 0 else {
            throw .request(list.name, " has no row: name a list of the devices to forget")
        }
    }
}

/// Erasure from one ledger, or from all ledgers that were merged into one.
///
/// All files are read first. Then each file that has to change is written under another name and
/// renamed. The order of the files ensures two properties. The ledger is valid after each step. If
/// a call is interrupted, a second call finds everything that is left to erase. The order is:
///
///     manifests ──▶ segments that only lose hashes ──▶ segments with verdicts ──▶ the list
///               ──▶ telemetry and page ──▶ copies of manifests
private final class Erasure {
    /// Ledger that has segments: the ledger itself, or one that was merged into it.
    private struct Part {
        var directory: LedgerDirectory
        var manifest: Manifest
        /// The manifest, with the devices masked in its texts.
        var maskedManifest: Manifest
        /// Whether a text in the manifest contains a token of a device.
        var hasText: Bool
        var changedPages: PageSet
        var segments: [SegmentErasure] = []
        /// Rows that a later run could send; nil in a copy, which no run continues.
        var unsettled: UnsettledErasure?

        /// Whether the manifest or a segment changes.
        var isAffected: Bool {
            hasText || unsettled?.rows.isEmpty == false || segments.contains(where: \.isAffected)
                // An earlier call was interrupted after it recorded its rows.
                || manifest.erasedRows != nil && segments.contains(where: \.hasOneRowChunk)
        }
    }

    /// A text file and its new content.
    private struct Text {
        var directory: LedgerDirectory
        var name: String
        var content: [UInt8]
    }

    /// The locked directory of the ledger.
    private let directory: LedgerDirectory
    private var manifest: Manifest
    private var parts: [Part] = []
    /// Spooled lists in the directory and in the directories of the parts.
    private var spools: [(directory: LedgerDirectory, erasure: SpoolErasure)] = []
    private var texts: [Text] = []
    /// Manifest of a merged ledger, with the devices masked in its texts.
    private var maskedManifest: Manifest

    private static let pageLimit = 1 << 26
    private static let telemetryLimit = 1 << 24

    // MARK: Reading

    init(_ path: String, _ devices: inout DeviceSet) throws(BroadsideError) {
        directory = try LedgerDirectory.openToRead(path)
        _ = try directory.readManifest()
        try directory.lock()
        // A run may have continued the ledger before it was locked here.
        manifest = try directory.readManifest()
        maskedManifest = manifest.masked(&devices)
        let ledgers = try directory.ledgers()
        let isMerged = manifest.shards != nil
        try refuseOthers(directory, also: Set(manifest.shards ?? []))
        if isMerged {
            for ledger in ledgers { try refuseOthers(ledger.directory) }
        }
        var pages = try readSpool(of: directory, manifest, &devices)
        try readTexts(of: directory, &devices)
        for (part, manifest) in ledgers {
            if isMerged {
                let own = try readSpool(of: part, manifest, &devices)
                if manifest.identity.part != nil { pages = own }
                try readTexts(of: part, &devices)
            }
            try read(part, manifest, pages, &devices)
        }
    }

    /// Refuses a directory with files of unknown content.
    private func refuseOthers(
        _ directory: LedgerDirectory, also known: Set<String> = []
    ) throws(BroadsideError) {
        for name in try directory.names().sorted() {
            let isKnown =
                LedgerDirectory.isOwn(name) || name == LedgerDirectory.originName
                || name == LedgerDirectory.formerSecretName || known.contains(name)
            guard !isKnown, !name.hasPrefix(".") else { continue }
            throw .usage(
                "ledger",
                "\(directory.path)/\(name) is not a file of the ledger, and may name devices: move it "
                    + "elsewhere, then run ledger forget again")
        }
    }

    private func readSpool(
        of directory: LedgerDirectory, _ manifest: Manifest, _ devices: inout DeviceSet
    ) throws(BroadsideError) -> PageSet {
        guard let path = try directory.spool() else { return PageSet() }
        let erasure = try SpoolErasure(path, manifest: manifest, devices: &devices)
        guard erasure.isAffected else { return PageSet() }
        spools.append((directory, erasure))
        return erasure.changedPages
    }

    private func readTexts(
        of directory: LedgerDirectory, _ devices: inout DeviceSet
    ) throws(BroadsideError) {
        let names = Set(try directory.names())
        if names.contains(LedgerDirectory.telemetryName) {
            let bytes = try directory.readSmallFile(
                LedgerDirectory.telemetryName, limit: Self.telemetryLimit)
            let members = TelemetrySeal.members(of: bytes)
            var text = Array(members ?? bytes[...])
            if devices.maskTokens(in: &text) {
                texts.append(
                    Text(
                        directory: directory, name: LedgerDirectory.telemetryName,
                        content: members == nil ? text : TelemetrySeal.sealed(text[...])))
            }
        }
        if names.contains(LedgerDirectory.pageName) {
            var text = try directory.readSmallFile(
                LedgerDirectory.pageName, limit: Self.pageLimit)
            if devices.maskTokens(in: &text) {
                texts.append(
                    Text(directory: directory, name: LedgerDirectory.pageName, content: text))
            }
        }
    }

    private func read(
        _ directory: LedgerDirectory, _ manifest: Manifest, _ pages: PageSet,
        _ devices: inout DeviceSet
    ) throws(BroadsideError) {
        let (manifest, segments) = try directory.segments(knownTo: manifest)
        let masked = manifest.masked(&devices)
        var part = Part(
            directory: directory, manifest: manifest, maskedManifest: masked,
            hasText: masked != manifest, changedPages: pages)
        do throws(LedgerError) {
            try manifest.checkPresence(of: segments)
            for segment in segments {
                part.segments.append(
                    try SegmentErasure(
                        of: segment, manifest: manifest, devices: &devices, changedPages: pages))
            }
        } catch {
            throw LedgerReader.unreadable(error, directory)
        }
        if self.manifest.shards == nil, try directory.origin() == nil {
            let unsettled = try UnsettledErasure(segments, manifest, in: directory, &devices)
            part.maskedManifest.record(erasedRows: unsettled.rows)
            part.unsettled = unsettled
        }
        parts.append(part)
    }

    // MARK: Writing

    /// Whether a text in a manifest contains a token of a device.
    private var hasManifestText: Bool {
        maskedManifest != manifest || parts.contains(where: \.hasText)
    }

    /// Whether any file contains data of a device.
    var isAffected: Bool {
        !spools.isEmpty || !texts.isEmpty || hasManifestText || parts.contains(where: \.isAffected)
    }

    /// Human-readable description of the changes that `write` would make.
    func preview(_ devices: borrowing DeviceSet) -> String {
        (isAffected
            ? "would forget \(description(devices.foundCount))"
            : "contains none of the devices: nothing would change") + note
    }

    /// Writes the files that contain data of a device.
    ///
    /// - Returns: A human-readable description of the changes.
    func write(_ devices: inout DeviceSet) throws(BroadsideError) -> String {
        let foundCount = devices.foundCount
        guard isAffected else {
            try finish()
            return "contains none of the devices: nothing changed" + note
        }
        let key = (randomWord(), randomWord())
        for part in parts {
            try write(part.maskedManifest, instead: part.manifest, to: part.directory)
        }
        if manifest.shards != nil {
            try write(maskedManifest, instead: manifest, to: directory)
        }
        // The hash of a one-row chunk is the hash of its row, and has to be erased. Segments with
        // verdicts or texts come last: as long as one of them is left, a repeated call finds it and
        // erases the hashes, too.
        for hasVerdicts in [false, true] {
            for part in parts {
                for segment in part.segments
                where segment.hasVerdicts == hasVerdicts
                    && (segment.isAffected || segment.hasOneRowChunk)
                {
                    try write(segment, of: part, key, &devices)
                }
            }
        }
        for spool in spools {
            try replace(LedgerDirectory.spoolName, in: spool.directory) {
                (descriptor, name) throws(BroadsideError) in
                try spool.erasure.write(to: descriptor, name: name, devices: &devices)
            }
        }
        for text in texts {
            try replace(text.name, in: text.directory) {
                (descriptor, name) throws(BroadsideError) in
                try writeAll(text.content, to: descriptor, name: name)
            }
        }
        try finish()
        return "forgot \(description(foundCount))" + note
    }

    private func randomWord() -> UInt64 { randomBytes(8).reduce(0) { $0 << 8 | UInt64($1) } }

    /// Writes a manifest without the devices. Omits the list's hash if the list changes or has only
    /// one row.
    private func write(
        _ masked: Manifest, instead manifest: Manifest, to directory: LedgerDirectory
    ) throws(BroadsideError) {
        var masked = masked
        if !spools.isEmpty || masked.rowCount == 1 { masked.listHash = nil }
        guard masked != manifest else { return }
        try directory.withOwnFolder { () throws(BroadsideError) in try directory.save(masked) }
    }

    private func write(
        _ segment: SegmentErasure, of part: Part, _ key: (UInt64, UInt64),
        _ devices: inout DeviceSet
    ) throws(BroadsideError) {
        let directory = part.directory
        try replace(segment.name, in: directory) { (descriptor, name) throws(BroadsideError) in
            do throws(LedgerError) {
                try segment.write(key: key, devices: &devices) { (bytes) throws(LedgerError) in
                    do throws(BroadsideError) {
                        try writeAll(bytes, to: descriptor, name: name)
                    } catch {
                        throw LedgerError(.inputOutput, detail: error.message)
                    }
                }
            } catch {
                throw LedgerReader.unreadable(error, directory)
            }
            // The new segment is read and checked before it replaces the old one, which is then
            // lost.
            let copy = LedgerSegment(
                epoch: segment.epoch, reactor: segment.reactor,
                bytes: try directory.fileBytes(".\(segment.name).new"))
            do throws(LedgerError) {
                let written = try SegmentErasure(
                    of: copy, manifest: part.manifest, devices: &devices,
                    changedPages: part.changedPages)
                guard !written.isAffected else {
                    throw LedgerError(.inputOutput, detail: "\(name) was written wrongly")
                }
            } catch {
                throw LedgerReader.unreadable(error, directory)
            }
        }
    }

    /// Writes a file under another name, and renames it. If that fails, the old file is still
    /// there.
    private func replace(
        _ name: String, in directory: LedgerDirectory,
        _ write: (Int32, String) throws(BroadsideError) -> Void
    ) throws(BroadsideError) {
        try directory.withOwnFolder { () throws(BroadsideError) in
            try directory.replace(name, writing: write)
        }
    }

    /// Removes the temporary files of killed processes, and replaces outdated copies of manifests.
    private func finish() throws(BroadsideError) {
        var directories = parts.map(\.directory)
        if manifest.shards != nil { directories.append(directory) }
        for directory in directories {
            try directory.withOwnFolder { () throws(BroadsideError) in
                try directory.removeTemporaryFiles()
                try directory.renewManifestCopy()
            }
        }
    }

    // MARK: Messages

    private var note: String { parts.compactMap(\.unsettled?.note).joined() }

    private func description(_ foundCount: Int) -> String {
        var rows = RowCounts()
        let files = Set(texts.map(\.name))
        for part in parts {
            for segment in part.segments { rows += segment.rows }
        }
        let states = RowState.settledStates.filter { rows[$0] > 0 }
            .map { "\(grouped(rows[$0])) \($0.name)" }
        var words = "\(counted(foundCount, "device"))"
        if rows.settled > 0 {
            words +=
                ", \(counted(Int(rows.settled), "verdict")) (\(states.joined(separator: ", ")))"
        }
        for part in parts { words += part.unsettled?.description ?? "" }
        let spooled = spools.reduce(0) { $0 + $1.erasure.rowCount }
        if spooled > 0 { words += ", \(counted(spooled, "row")) of its list" }
        if hasManifestText { words += ", texts in manifest.json" }
        for name in files.sorted() { words += ", \(name)" }
        return words
    }
}
