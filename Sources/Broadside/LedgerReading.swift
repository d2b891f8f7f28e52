import APNs
import Campaign
internal import Glibc

/// A ledger, opened to be read: what `ledger stats`, `export`, `verify` and `find` stand on. A run
/// may be writing to it meanwhile.
public struct LedgerReading {
    let directory: LedgerDirectory
    let manifest: Manifest
    private let segments: [LedgerSegment]

    /// Opens a ledger's directory.
    public init(path: String) throws(BroadsideError) {
        directory = try LedgerDirectory.openToRead(path)
        manifest = try directory.readManifest()
        segments = try directory.segments()
    }

    /// The campaign, 16 hexadecimal digits.
    public var campaign: String { manifest.campaign }

    /// Whether every row is settled, by the manifest's word.
    public var isFinished: Bool { manifest.isFinished }

    /// Where the run read its list, where it was a file.
    public var listPath: String? { manifest.listPath }

    /// Rows by state name, and by reason, with what the manifest knows besides.
    public func statistics() throws(BroadsideError) -> Summary {
        let summary: LedgerSummary
        do {
            summary = try LedgerSummary(try index())
        } catch let error as LedgerError {
            throw unreadable(error)
        } catch {
            throw Self.other(error)
        }
        var result = Summary(
            campaign: manifest.campaignNumber, outcome: manifest.isFinished ? .complete : .stopped)
        result.take(summary, rows: manifest.rowCount)
        result.inDoubt = summary.count(.inDoubt)
        result.retries = manifest.counters.retries
        result.reconnects = manifest.counters.reconnects
        return result
    }

    /// Reads everything and checks it.
    ///
    /// - Returns: What was found, for people.
    public func verify() throws(BroadsideError) -> String {
        do {
            let verification = try LedgerVerification(checking: segments, manifest: manifest)
            var text = "sound: \(verification.summary.reservedRowCount) rows reserved, "
            text += "\(verification.summary.count(.accepted)) accepted"
            text += verification.isFinished ? ", finished" : ", not finished"
            for tail in verification.tornTails {
                text += "\n\(tail.segment): unsynced bytes from \(tail.offset) on were lost"
            }
            return text
        } catch {
            throw unreadable(error)
        }
    }

    /// Writes rows in list order.
    ///
    /// - Parameters:
    ///   - tokens: The list; nil: where the run read it, if it is still there.
    ///   - states: Which rows, by name; empty: all settled ones.
    ///   - output: Takes the text, a part at a time.
    public func export(
        tokens: String?, format: String, states: [String],
        output: ([UInt8]) throws(BroadsideError) -> Void
    ) throws(BroadsideError) {
        guard let format = ExportFormat(rawValue: format) else {
            throw .request("--format '\(format)' is unknown: use csv or jsonl")
        }
        var wanted: Set<RowState> = []
        for name in states {
            guard let state = RowState(name: name) else {
                let names = RowState.allCases.map(\.name).joined(separator: ", ")
                throw .request("--state '\(name)' is unknown: one of \(names)")
            }
            wanted.insert(state)
        }
        let campaign = manifest.campaignNumber
        var export = LedgerExport(
            of: try index(), states: wanted.isEmpty ? nil : wanted, format: format,
            reasonText: { Reason(rawValue: $0)?.text ?? "reason \($0)" },
            appendNotificationID: { row, bytes in
                bytes += notificationIDText(campaign: campaign, row: row)
            })
        if let list = try openList(tokens) {
            var reader = try ListPartReader(list: list)
            try write(&export, &reader, output)
        } else {
            var none = NoLedgerList()
            try write(&export, &none, output)
        }
    }

    private func openList(_ tokens: String?) throws(BroadsideError) -> TokenList? {
        if let tokens { return try openList(at: tokens) }
        guard let path = manifest.listPath, LedgerDirectory.exists(path) else { return nil }
        let list = try openList(at: path)
        // Another list in the same place would tell lies.
        if let count = manifest.identity.listByteCount, count != list.byteCount {
            standardError(
                "broadside: warning: \(path) is not as long as when it was sent: "
                    + "name the list that was sent with --tokens")
            return nil
        }
        return list
    }

    /// The list as it was read when it was sent, wherever it lies now.
    private func openList(at path: String) throws(BroadsideError) -> TokenList {
        let identity = manifest.identity
        guard let format = TokenListFormat(rawValue: identity.listFormat) else {
            throw .request(
                "the list was sent as \(identity.listFormat), which this version can't read")
        }
        return try TokenList(
            .file(path), format: format, tokenColumn: identity.columns.first)
    }

    private func write(
        _ export: inout LedgerExport, _ list: inout some LedgerListReader,
        _ output: ([UInt8]) throws(BroadsideError) -> Void
    ) throws(BroadsideError) {
        var bytes: [UInt8] = []
        var hasMore = true
        while hasMore {
            do {
                hasMore = try export.next(list: &list, into: &bytes)
            } catch {
                throw unreadable(error)
            }
            if bytes.count >= 1 << 18 || !hasMore {
                try output(bytes)
                bytes.removeAll(keepingCapacity: true)
            }
        }
    }

    /// The rows with an apns-id or a token, as text.
    public func find(
        notificationID: String?, token: String?
    ) throws(BroadsideError) -> [String] {
        var wantedRow: UInt64?
        var wantedDigits: [UInt8]?
        if let notificationID {
            guard let parsed = unsafe NotificationID(parsing: Array(notificationID.utf8).span.bytes)
            else {
                throw .request(
                    "--apns-id '\(notificationID)' is no apns-id: copy all 36 characters")
            }
            guard parsed.campaign == manifest.campaignNumber else { return [] }
            wantedRow = parsed.row
        }
        if let token {
            guard let digits = canonicalToken(token) else {
                throw .request("--token '\(token)' is no device token: hexadecimal digits in pairs")
            }
            wantedDigits = digits
        }
        let index = try index()
        do {
            return try LedgerSearch(row: wantedRow, token: wantedDigits).run(index, manifest)
        } catch {
            throw unreadable(error)
        }
    }

    func index() throws(BroadsideError) -> LedgerIndex {
        do {
            return try LedgerIndex(segments: segments, manifest: manifest)
        } catch {
            throw unreadable(error)
        }
    }

    func unreadable(_ error: LedgerError) -> BroadsideError {
        BroadsideError("--ledger \(directory.path): \(error)", exitCode: 5)
    }

    private static func other(_ error: any Error) -> BroadsideError {
        error as? BroadsideError ?? BroadsideError("\(error)", exitCode: 5)
    }
}

/// A token's digits in lower case; nil where the text is no token.
func canonicalToken(_ text: String) -> [UInt8]? {
    let room = UnsafeMutableRawBufferPointer.allocate(
        byteCount: TokenText.maximumDigitCount, alignment: 8)
    defer { unsafe room.deallocate() }
    let bytes = Array(text.utf8)
    var digits = unsafe OutputRawSpan(buffer: room, initializedCount: 0)
    let isToken = unsafe TokenText.canonicalize(bytes.span.bytes, into: &digits)
    let count = unsafe digits.finalize(for: room)
    return isToken ? unsafe Array(room[..<count]) : nil
}

/// The apns-id of a row.
func notificationIDText(campaign: UInt64, row: UInt64) -> [UInt8] {
    unsafe [UInt8](unsafeUninitializedCapacity: NotificationID.textCount) { buffer, count in
        let room = UnsafeMutableRawBufferPointer(buffer)
        var output = unsafe OutputRawSpan(buffer: room, initializedCount: 0)
        NotificationID(campaign: campaign, row: row).write(into: &output)
        count = unsafe output.finalize(for: room)
    }
}
