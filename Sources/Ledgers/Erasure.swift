import BroadsideLedgerFormat
import BroadsideRows
import BroadsideSupport
internal import BroadsideTLS

/// Erasure from one ledger, or from all ledgers that were merged into one.
///
/// All files are read first. Then each file that has to change is written under another name and
/// renamed. The order of the files ensures two properties. The ledger is valid after each step. If
/// a call is interrupted, a second call finds everything that is left to erase. The order is:
///
///     manifests ──▶ segments that only lose hashes ──▶ segments with verdicts ──▶ the list
///               ──▶ telemetry and page ──▶ copies of manifests
final class Erasure {
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

    /// Reason why a resume would send to some of the devices; nil if none of the ledger's rows is
    /// known to be left.
    var failure: BroadsideError? { parts.lazy.compactMap(\.unsettled?.failure).first }

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
            // A row that was sent again has a record of each of its runs.
            words += ", \(counted(Int(rows.settled), "record")) (\(states.joined(separator: ", ")))"
        }
        for part in parts { words += part.unsettled?.description ?? "" }
        let spooled = spools.reduce(0) { $0 + $1.erasure.rowCount }
        if spooled > 0 { words += ", \(counted(spooled, "row")) of its list" }
        if hasManifestText { words += ", texts in manifest.json" }
        for name in files.sorted() { words += ", \(name)" }
        return words
    }
}
