internal import BroadsideAPNs
import BroadsideLedgerFormat
import BroadsideLists
import BroadsideRows
import BroadsideSupport
internal import Glibc

/// Search for the rows of devices that a later run could send: rows that remain or are in doubt. In
/// a ledger without tokens, failed and unknown rows, too.
///
/// The ledger has no data of these devices, so they are found in the list. The list stays as it is.
/// `ledger forget` records the numbers of the rows, and later runs settle the rows without sending
/// them.
struct UnsettledErasure {
    /// The rows that the ledger can record.
    private(set) var rows = ErasedRows()
    /// Note about rows that could not be searched, for the line about the ledger; empty if there
    /// are none.
    private(set) var note = ""
    /// Reason why a resume may send to devices; nil if none of their rows is known to be left. A
    /// list that was replaced does not count, because a resume refuses it.
    private(set) var failure: BroadsideError?

    /// - Parameters:
    ///   - segments: All segments of the ledger.
    ///   - manifest: The ledger's manifest. It records the path of the list.
    ///   - devices: The devices. The set counts those that are found.
    init(
        _ segments: [LedgerSegment], _ manifest: Manifest, in directory: LedgerDirectory,
        _ devices: inout DeviceSet
    ) throws(BroadsideError) {
        let path = manifest.listPath
        if path == nil {
            // If the list came from standard input, its rows in the ledger's copy are erased instead.
            guard try Self.hasNamedDevice(manifest, in: directory), devices.foundCount > 0 else {
                return
            }
        }
        var index: LedgerIndex
        do throws(LedgerError) {
            index = try LedgerIndex(segments: segments, manifest: manifest)
            // A later run may have a higher limit.
            index.rows.limit = nil
            guard try Self.hasRowsToSend(index, manifest) else { return }
            if path == nil, try Self.hasOnlyRowToSend(index, manifest) { rows = ErasedRows([0]) }
        } catch {
            throw LedgerReader.unreadable(error, directory)
        }
        guard let path else { return }
        if let problem = Self.problem(ofFile: path) {
            miss(problem, in: directory)
            return
        }
        do throws(BroadsideError) {
            let list = try manifest.openList(at: path)
            if try Self.isSame(list, manifest, index) {
                let found = try Self.search(list, index, manifest, devices)
                record(found, index, manifest, in: directory, &devices)
                return
            }
        } catch {
            guard error.exitCode != ExitCode.rowsRemain else { throw error }
            if error.exitCode != ExitCode.badRequest {
                // In this command, the option that the message begins with names the devices.
                let option = error.option.map { "--\($0) " } ?? ""
                let isFirst = error.message.starts(withBytes: option)
                miss(String(error.message.dropFirst(isFirst ? option.count : 0)), in: directory)
                return
            }
        }
        note =
            "; rows that a resume could send were not searched, because \(path) is not the list that "
            + "was sent: put the list back and run ledger forget again before a resume"
    }

    /// Takes note that the list can't be read.
    ///
    /// - Parameter problem: Path of the list, why it can't be read, and the remedy.
    private mutating func miss(_ problem: String, in directory: LedgerDirectory) {
        note = "; rows that a resume could send were not searched"
        failure = BroadsideError(
            option: "ledger",
            "\(directory.path): rows that a resume could send were not searched: \(problem)",
            exitCode: ExitCode.disk)
    }

    /// Describes why a list's file can't be opened, and the remedy; nil if it can.
    private static func problem(ofFile path: String) -> String? {
        let descriptor = SystemCall.open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC)
        let number = errno
        guard descriptor < 0 else {
            close(descriptor)
            return nil
        }
        let end = "then run the same command again"
        switch number {
        case ENOENT, ENOTDIR:
            return "\(path) is missing: put the list back, \(end); or, if you will not resume its "
                + "campaign, delete the ledger"
        default:
            return "\(path): "
                + FileFailure.message(errno: number, "make the list readable, \(end)")
        }
    }

    /// Records the rows that were found, as far as the ledger can.
    private mutating func record(
        _ found: [(row: UInt64, fingerprint: UInt64)], _ index: LedgerIndex, _ manifest: Manifest,
        in directory: LedgerDirectory, _ devices: inout DeviceSet
    ) {
        var added = AddedErasedRows(to: manifest.erasedRows)
        var left: (count: Int, first: UInt64) = (0, 0)
        for (row, fingerprint) in found {
            if added.add(row) {
                _ = devices.find(fingerprint: fingerprint)
            } else {
                if left.count == 0 { left.first = row }
                left.count += 1
            }
        }
        rows = added.rows
        guard left.count > 0 else { return }
        let limit = index.rows.count(upTo: left.first)
        // A limit of 0 rows is not possible.
        let remedy =
            limit > 0
            ? "resume it only with --limit \(limit), which sends to none of them, or delete the ledger"
            : "delete the ledger"
        failure = .usage(
            "ledger",
            "\(directory.path): a resume would still send to \(counted(left.count, "row")) of these "
                + "devices, because a ledger has at most \(grouped(ErasedRows.rangesLimit)) ranges of "
                + "erased rows: \(remedy)")
    }

    /// Whether a later run may send a row.
    private static func hasRowsToSend(
        _ index: LedgerIndex, _ manifest: Manifest
    ) throws(LedgerError) -> Bool {
        guard manifest.isWholeListFinished else { return true }
        guard !manifest.identity.keepsTokens else { return false }
        let ledger = try LedgerSummary(index)
        return ledger.count(.failed) + ledger.count(.unknown) > 0
    }

    /// Whether the only row of a ledger is that of a device that `send --to` named. The ledger has no
    /// list. It has the device only in texts, such as the command line.
    private static func hasNamedDevice(
        _ manifest: Manifest, in directory: LedgerDirectory
    ) throws(BroadsideError) -> Bool {
        let identity = manifest.identity
        guard identity.wireProtocol == nil || identity.acceptsBySilence else { return false }
        return try !directory.hasSpool
    }

    /// Whether a later run may send the only row of a ledger that was not yet erased.
    private static func hasOnlyRowToSend(
        _ index: LedgerIndex, _ manifest: Manifest
    ) throws(LedgerError) -> Bool {
        guard !(manifest.erasedRows?.contains(0) ?? false) else { return false }
        guard index.chunkCount > 0 else { return true }
        var plan = plan(index, manifest)
        while let work = try plan.next() {
            if case .chunk(let work) = work { return work.sendCount > 0 }
        }
        return false
    }

    /// Returns a plan that contains each row that any later run could send.
    private static func plan(_ index: LedgerIndex, _ manifest: Manifest) -> ResumePlan {
        ResumePlan(
            index: index, lostRows: .resend,
            reopens: manifest.identity.keepsTokens ? [] : [.failed, .unknown])
    }

    /// Whether a list has the size, the header and the reserved parts of the list that was sent. A
    /// resume compares the same.
    private static func isSame(
        _ list: TokenList, _ manifest: Manifest, _ index: LedgerIndex
    ) throws(BroadsideError) -> Bool {
        let difference = try LedgerReader.difference(
            of: list, byteCount: manifest.identity.listByteCount, headerHash: manifest.headerHash)
        guard difference == nil else { return false }
        if let known = manifest.listHash { return try list.contentHash() == known }
        var reader = ListPartReader(list: list)
        try reader.check(index, isFinished: manifest.isFinished && manifest.rowsLimit == nil)
        return true
    }

    private static func search(
        _ list: TokenList, _ index: LedgerIndex, _ manifest: Manifest,
        _ devices: borrowing DeviceSet
    ) throws(BroadsideError) -> [(row: UInt64, fingerprint: UInt64)] {
        var cursor = try RowCursor(
            list, ListSelection(rows: index.rows, erased: index.erasedRows),
            left: plan(index, manifest),
            endsOnSignals: true)
        var digits = TokenDigits()
        var found: [(row: UInt64, fingerprint: UInt64)] = []
        while let row = try cursor.next() {
            guard cursor.disposition.isSent else { continue }
            let refusal = digits.write {
                cursor.reader.readToken(cursor.reader.field(0), into: &$0)
            }
            guard refusal == nil else { continue }
            let fingerprint = TokenText.fingerprint(digits.bytes)
            guard devices.contains(fingerprint: fingerprint) else { continue }
            found.append((row.number, fingerprint))
        }
        return found
    }

    /// Description of the rows for the line about the ledger; empty if there are none.
    var description: String {
        rows.isEmpty
            ? "" : ", \(counted(rows.count, "row")) that a resume will not send"
    }
}
