internal import BroadsideAPNs
public import BroadsideLedgerFormat
import BroadsideLists
package import BroadsideRows
public import BroadsideSupport
internal import Glibc

/// Ledger opened for reading: for `ledger stats`, `export`, `verify` and `find`. A run may write to
/// the ledger meanwhile.
public struct LedgerReader {
    package let directory: LedgerDirectory
    package let manifest: Manifest
    /// The ledger itself; for a merged ledger, the ledgers of its shards or parts.
    package let ledgers: [(directory: LedgerDirectory, manifest: Manifest)]

    /// Opens a ledger's directory.
    public init(path: String) throws(BroadsideError) {
        directory = try LedgerDirectory.openToRead(path)
        manifest = try directory.readManifest()
        ledgers = try directory.ledgers()
    }

    /// Name of the campaign; for a merged ledger, the name that all its shards or parts have. nil
    /// if there is none.
    package var name: String? {
        if let name = manifest.name { return name }
        let names = Set(ledgers.map(\.manifest.name))
        return names.count == 1 ? names.first ?? nil : nil
    }

    /// Campaign number, 16 hexadecimal digits.
    public var campaign: String { manifest.campaign }

    /// Whether every row is settled according to the manifest. For a merged ledger: whether this
    /// holds for all its shards or parts.
    public var isFinished: Bool {
        manifest.isFinished || manifest.shards != nil && ledgers.allSatisfy(\.manifest.isFinished)
    }

    /// Whether the latest run had a limit, and the list has at least that many rows; nil if this is
    /// not known. For a merged ledger: whether this holds for one of its shards or parts.
    package var endsAtLimit: Bool? {
        let limits = ledgers.map(\.manifest.endsAtLimit)
        return limits.contains(true) ? true : limits.contains(nil) ? nil : false
    }

    /// Path from which the run read its list, if it was a file.
    public var listPath: String? { manifest.listPath }

    /// Reads and checks the whole ledger.
    ///
    /// - Returns: A human-readable description of the findings.
    public func verify() throws(BroadsideError) -> String {
        var summary = LedgerSummary()
        var notes = ""
        for ledger in ledgers {
            let (manifest, segments) = try ledger.directory.segments(knownTo: ledger.manifest)
            do throws(LedgerError) {
                let verification = try LedgerVerification(checking: segments, manifest: manifest)
                summary.add(verification.summary)
                for tail in verification.tornTails {
                    notes += "\n\(tail.segment): unsynced bytes from \(tail.offset) on were lost"
                }
            } catch {
                throw Self.unreadable(error, ledger.directory)
            }
            // No run uses the record of a copy in a merged ledger.
            guard try ledger.directory.origin() == nil else { continue }
            _ = try ledger.directory.attemptRecord(manifest)
            if let note = try ledger.directory.lostRecord(manifest) { notes += "\n\(note)" }
        }
        try checkShards()
        assert(
            summary.count(.accepted) <= summary.reservedRowCount, "only reserved rows are accepted")
        var text = "sound: \(grouped(summary.reservedRowCount)) rows reserved, "
        text += "\(grouped(summary.count(.accepted))) accepted"
        text += isFinished ? ", finished" : ", not finished"
        if manifest.shards != nil {
            text += ", \(grouped(ledgers.count)) \(manifest.holdsParts ? "parts" : "shards")"
        }
        return text + notes
    }

    /// Checks that the shards or parts of a merged ledger belong to one campaign.
    private func checkShards() throws(BroadsideError) {
        guard manifest.shards != nil else { return }
        if manifest.holdsParts {
            do throws(PartSet.Problem) {
                _ = try PartSet(ledgers.map(\.manifest))
            } catch {
                throw BroadsideError(error.description { ledgers[$0].directory.path }, exitCode: 5)
            }
            return
        }
        do throws(ShardSet.Problem) {
            _ = try ShardSet(ledgers.map(\.manifest))
        } catch {
            throw BroadsideError(error.description { ledgers[$0].directory.path }, exitCode: 5)
        }
    }

    /// The names that `export` accepts for states.
    package static var stateNames: [String] { RowState.allCases.map(\.name) }

    /// Writes rows in list order. A merged ledger of parts is written one part after the other.
    ///
    /// - Parameters:
    ///   - tokens: Path of the list; nil: the path from which the run read it, if it still exists.
    ///   - format: Format of a row.
    ///   - states: Names of the states to write; empty for all settled states.
    ///   - reasons: Reasons to write; empty for all rows.
    ///   - arm: Name of the arm to write; nil for all rows.
    ///   - columns: Optional columns that were requested. They follow all others.
    ///   - output: Receives successive pieces of the text.
    public func export(
        tokens: String?, format: ExportFormat, states: [String], reasons: [String] = [],
        arm: String? = nil, columns: Set<ExportColumn> = [],
        output: ([UInt8]) throws(BroadsideError) -> Void
    ) throws(BroadsideError) {
        try writeExport(
            tokens: tokens, format: format, states: states, reasons: reasons, arm: arm,
            columns: columns
        ) {
            (bytes) throws(BroadsideError) in try output([UInt8](bytes))
        }
    }

    /// Writes rows in list order. The text is passed to the output without a copy.
    package func writeExport(
        tokens: String?, format: ExportFormat, states: [String], reasons: [String],
        arm: String? = nil, columns: Set<ExportColumn> = [],
        output: (RawSpan) throws(BroadsideError) -> Void
    ) throws(BroadsideError) {
        let wanted = try Self.states(states)
        var header: [UInt8] = []
        try checkArm(arm)
        format.appendHeader(
            to: &header, hasArms: split != nil, hasTopics: hasRowTopics, further: columns)
        try refuseOneList(tokens)
        for ledgers in manifest.holdsParts ? ledgers.map({ [$0] }) : [ledgers] {
            if tokens == nil { try warnOfMissingList(of: ledgers[0]) }
            let list = try openList(tokens, of: ledgers[0])
            if !header.isEmpty { try output(header.rawSpan) }
            header = []
            try writeRows(
                of: ledgers, list: list, format, wanted, reasons, arm: arm, columns: columns,
                tokens: tokens, output: output)
        }
    }

    /// The split of devices into arms; nil if the campaign has none.
    package var split: ArmSplit? { ledgers.first?.manifest.identity.split }

    /// Whether the campaign's rows name their topics.
    package var hasRowTopics: Bool { ledgers.first?.manifest.identity.hasRowTopics ?? false }

    /// Refuses an arm that the campaign does not have.
    func checkArm(_ name: String?) throws(BroadsideError) {
        guard let name else { return }
        guard let split else {
            throw .usage("arm", "'\(printable(name))': the campaign has no arms: remove --arm")
        }
        guard split.number(of: name) == nil else { return }
        throw .usage(
            "arm",
            "'\(printable(name))' is not an arm of the campaign: name one of "
                + split.names.joined(separator: ", "))
    }

    /// Returns the states with the given names.
    static func states(_ names: [String]) throws(BroadsideError) -> Set<RowState> {
        var wanted: Set<RowState> = []
        for name in names {
            guard let state = RowState(name: name) else {
                let known = Self.stateNames
                let nearest = nearestName(to: name, among: known).map { "did you mean \($0)? " }
                let several = name.contains(",") ? "write --state once per state; " : ""
                throw .usage(
                    "state",
                    "'\(name)' is unknown: \(several)\(nearest ?? "")use one of "
                        + known.joined(separator: ", "))
            }
            wanted.insert(state)
        }
        return wanted
    }

    /// Writes the rows of ledgers that were sent from one list.
    private func writeRows(
        of ledgers: [(directory: LedgerDirectory, manifest: Manifest)], list: TokenList?,
        _ format: ExportFormat, _ wanted: Set<RowState>, _ reasons: [String], arm: String?,
        columns: Set<ExportColumn>, tokens: String?,
        output: (RawSpan) throws(BroadsideError) -> Void
    ) throws(BroadsideError) {
        var parts = MergedExport()
        for ledger in ledgers {
            let identity = ledger.manifest.identity
            let export = LedgerExport(
                of: try index(ledger), states: wanted.isEmpty ? nil : wanted,
                reasons: Set(reasons), format: format, isPart: true,
                notesRows: ledgers.count > 1,
                // Only requests to the provider API have an apns-id.
                campaign: identity.hasNotificationIDs ? ledger.manifest.campaignNumber : nil,
                part: identity.partNumber,
                acceptsBySilence: identity.acceptsBySilence, split: identity.split,
                hasTopics: identity.hasRowTopics, arm: arm, columns: columns,
                reasonText: { Reason(rawValue: $0)?.text ?? "reason \($0)" })
            parts.append(export, list: list.map { ListPartReader(list: $0) })
        }
        try parts.write(
            output,
            unreadable: { error in
                if tokens == nil, let list, Self.canContinueWithoutList(error, wanted) {
                    Self.warn(error, of: list)
                    return nil
                }
                return unreadable(
                    error, ledgers.count == 1 ? ledgers[0].directory : directory, tokens: tokens)
            })
    }

    /// Whether an export of rows in the given states can continue although the list can't be read.
    ///
    /// - If the file at the list's path is another list, the export can continue.
    /// - If the list has a fault, the export can continue only if it excludes rows that no run
    ///   reserved. Otherwise, such rows would be missing without notice.
    static func canContinueWithoutList(_ error: LedgerError, _ states: Set<RowState>) -> Bool {
        error.code == .badList || error.code == .faultyList && !states.contains(.remaining)
    }

    /// Warns that the rest of the rows is written without the list, because of an error in it.
    static func warn(_ error: LedgerError, of list: TokenList) {
        let path = list.path ?? "\(list.name)"
        warnWithoutList(
            error.detail.contains(path) ? error.detail : "\(path): \(error.detail)")
    }

    /// Warns that rows are written without the data that only the list has.
    ///
    /// - Parameter problem: Path of the list, and why it can't be used.
    static func warnWithoutList(_ problem: String) {
        standardErrorLine(
            "broadside: warning: \(problem): the output lacks line numbers, tokens of accepted rows, "
                + "and rows that no run reserved: use --tokens to name the list that was sent")
    }

    /// Returns the error for a fault in the ledger, or in the list that the user named for it.
    func unreadable(
        _ error: LedgerError, _ directory: LedgerDirectory, tokens: String?
    ) -> BroadsideError {
        guard error.code == .badList, let tokens else {
            return Self.unreadable(error, directory)
        }
        return .usage("tokens", "\(tokens): \(error.detail): name the list that was sent")
    }

    /// Checks that an output replaces neither the campaign's list nor the ledger's files.
    public func checkOutput(
        _ path: String?, option: String = "output"
    ) throws(BroadsideError) {
        guard let path else { return }
        let list = listPath.map { [OutputRule.Input(option: "tokens", path: $0)] } ?? []
        try OutputRule(inputs: list, ledgers: [directory.path]).check(option: option, path: path)
    }

    /// Refuses a list from the user for a merged ledger of parts, because each part has its own
    /// list.
    func refuseOneList(_ tokens: String?) throws(BroadsideError) {
        guard tokens != nil, manifest.holdsParts else { return }
        throw .usage(
            "tokens",
            "names one list, but each part of \(directory.path) has its own: "
                + "name the part's ledger, such as --ledger "
                + "\(directory.path)/\(manifest.shards?.first ?? "")")
    }

    /// Opens the list that was sent for one of the ledgers: the list at the path `tokens`, or, if
    /// that is nil, at the path that the ledger records.
    ///
    /// - Returns: nil if the file at the recorded path is missing. If there is a file but it is
    ///   another list, prints a warning and returns nil.
    func openList(
        _ tokens: String?, of ledger: (directory: LedgerDirectory, manifest: Manifest)
    ) throws(BroadsideError) -> TokenList? {
        let manifest = owner(ofListOf: ledger).manifest
        if let tokens { return try manifest.openList(at: tokens) }
        guard let path = try recordedListPath(of: ledger), try fileCanBeSeen(path) else {
            return nil
        }
        // Another list under the same path would give wrong results.
        do throws(BroadsideError) {
            let list = try manifest.openList(at: path)
            // A merged ledger has no hash of the header, but each of its shards has.
            let difference = try Self.difference(
                of: list, byteCount: manifest.identity.listByteCount,
                headerHash: ledger.manifest.headerHash)
            guard let difference else { return list }
            Self.warnWithoutList("\(path) has another \(difference) than when it was sent")
        } catch {
            guard error.exitCode == ExitCode.badRequest else { throw error }
            Self.warnWithoutList("\(path) can't be read as the list that was sent")
        }
        return nil
    }

    /// Returns the name of a property in which a list differs from the list that was sent; nil if
    /// none differs. Reads no row.
    static func difference(
        of list: TokenList, byteCount: UInt64?, headerHash: String?
    ) throws(BroadsideError) -> String? {
        if let byteCount, let found = list.byteCount, found != byteCount { return "size" }
        if let headerHash, try list.headerHash() != headerHash { return "header" }
        return nil
    }

    /// Warns if the list that was sent for one of the ledgers is no longer at its recorded path.
    func warnOfMissingList(
        of ledger: (directory: LedgerDirectory, manifest: Manifest)
    ) throws(BroadsideError) {
        guard let path = try missingList(of: ledger) else { return }
        Self.warnWithoutList("\(path) is missing")
    }

    /// Returns the recorded path of the list that was sent for one of the ledgers; nil if the list
    /// is there, or if the run had none.
    func missingList(
        of ledger: (directory: LedgerDirectory, manifest: Manifest)
    ) throws(BroadsideError) -> String? {
        guard let path = try recordedListPath(of: ledger), try !fileCanBeSeen(path) else {
            return nil
        }
        return path
    }

    /// Path from which the run of one of the ledgers read the list; nil if it had no list.
    private func recordedListPath(
        of ledger: (directory: LedgerDirectory, manifest: Manifest)
    ) throws(BroadsideError) -> String? {
        let (directory, manifest) = owner(ofListOf: ledger)
        let spool = try directory.spool()
        return manifest.listPath ?? spool
    }

    /// Returns the ledger that records the path of the given ledger's list. Shards share one list,
    /// whose path is in the manifest of the merged ledger.
    private func owner(
        ofListOf ledger: (directory: LedgerDirectory, manifest: Manifest)
    ) -> (directory: LedgerDirectory, manifest: Manifest) {
        manifest.holdsParts ? ledger : (directory, manifest)
    }

    package func index(
        _ ledger: (directory: LedgerDirectory, manifest: Manifest)
    ) throws(BroadsideError) -> LedgerIndex {
        try current(ledger).index
    }

    /// Returns the current segments of one of the ledgers, with the matching manifest.
    package func current(
        _ ledger: (directory: LedgerDirectory, manifest: Manifest)
    ) throws(BroadsideError) -> (index: LedgerIndex, manifest: Manifest) {
        let (manifest, segments) = try ledger.directory.segments(knownTo: ledger.manifest)
        do {
            return (try LedgerIndex(segments: segments, manifest: manifest), manifest)
        } catch {
            throw Self.unreadable(error, ledger.directory)
        }
    }

    package static func unreadable(
        _ error: LedgerError, _ directory: LedgerDirectory
    ) -> BroadsideError {
        if error.code == .interrupted { return SignalWatch.stopped }
        // The text of the error names the list.
        if error.code == .faultyList { return .request(error.detail) }
        if let newer = LedgerDirectory.newerVersion(error, directory.path) { return newer }
        let advice = error.code.isDamage ? ": \(directory.repairAdvice)" : ""
        return BroadsideError(
            option: "ledger", "\(directory.path): \(error)\(advice)", exitCode: 5)
    }

    package static func other(_ error: any Error) -> BroadsideError {
        error as? BroadsideError ?? BroadsideError("\(error)", exitCode: 5)
    }
}

extension Manifest {
    /// Opens the list at a path, as the run read it.
    func openList(at path: String) throws(BroadsideError) -> TokenList {
        guard let format = TokenListFormat(identity: identity.listFormat) else {
            throw .request(
                "the list was sent as \(identity.listFormat), which this version can't read")
        }
        return try TokenList(
            .file(path), format: format, tokenColumn: identity.columns.first, isInspected: false)
    }
}

/// Returns a token's digits in lower case; nil if the text is not a token.
package func canonicalToken(_ text: String) -> [UInt8]? {
    let bytes = Array(text.utf8)
    var isToken = false
    let digits = [UInt8](capacity: TokenText.maximumDigitCount) { digits in
        isToken = TokenText.canonicalize(bytes.rawSpan, into: &digits)
    }
    assert(!isToken || digits.count % 2 == 0, "a byte has two digits")
    return isToken ? digits : nil
}

/// Returns the error for an option whose value is not a device token. The message names the kind of
/// the value if it is known, such as a token of Firebase.
package func notDeviceToken(_ text: String, option: String) -> BroadsideError {
    let kind = ForeignToken.detect(Array(text.utf8.prefix(ForeignToken.excerptByteCount))[...])
    return .usage(
        option,
        "'\(wordExcerpt(text))' is not a device token"
            + (kind.map { ". It has the form of \($0.name): \($0.advice(isColumn: false))" }
                ?? ": write an even number of hexadecimal digits"))
}

/// Returns the apns-id of a row.
func notificationIDText(campaign: UInt64, part: UInt16, row: UInt64) -> [UInt8] {
    [UInt8](capacity: NotificationID.textCount) { output in
        NotificationID(campaign: campaign, part: part, row: row).write(into: &output)
    }
}
