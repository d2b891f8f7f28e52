import BroadsideAPNs
public import BroadsideLedgerFormat
import BroadsideLists
import BroadsideRows
public import BroadsideSupport

/// Row found by `ledger find`.
public struct FoundRow: Sendable {
    /// Directory of the ledger, as the user named it. For a merged ledger of parts, the directory
    /// of the row's part.
    public var ledger: String
    /// Part of the campaign that the row belongs to; nil for a campaign of one list.
    public var part: CampaignPart?
    /// Directory of an earlier found row that is the same notification; nil if there is none. A copy
    /// of a ledger, such as a merged one, has the rows of its original.
    public fileprivate(set) var same: String?
    fileprivate var row: ExportRow
    /// Campaign, part and shard of the row.
    fileprivate var list: String

    /// Human-readable description in one line.
    public var text: String {
        var text = "row \(row.row) \(row.state.name)"
        if let status = row.status { text += " status \(status)" }
        if !row.reason.isEmpty {
            text += " \(printable(String(decoding: row.reason, as: UTF8.self)))"
        }
        if let part { text += ", part \(part.text)" }
        if let line = row.line { text += ", line \(line)" }
        text += ", attempts \(row.attempts)"
        if let arm = row.armName { text += ", arm \(arm)" }
        if let topic = row.topic, !topic.isEmpty {
            text += ", topic \(printable(String(decoding: topic, as: UTF8.self)))"
        }
        if !row.notificationID.isEmpty {
            text += ", apns-id \(String(decoding: row.notificationID, as: UTF8.self))"
        }
        if let uniqueID = row.uniqueID, !uniqueID.isEmpty {
            text += ", apns-unique-id \(printable(String(decoding: uniqueID, as: UTF8.self)))"
        }
        if let settled = row.settledAtMilliseconds {
            text += ", settled at \(settled) (\(universalTime(settled)))"
        }
        if let timestamp = row.timestamp {
            text += ", APNs reports \(timestamp) (\(universalTime(timestamp)))"
        }
        if let same { text += ", the same notification as in \(same)" }
        return text
    }

    /// JSON object with the ledger and the columns of an export. It has `unique_id` if the row has
    /// an apns-unique-id, and `same_as` if another ledger's row is the same notification.
    public var json: String {
        var bytes: [UInt8] = []
        var row = row
        if row.uniqueID == [] { row.uniqueID = nil }
        ExportFormat.jsonl.append(row, to: &bytes)
        // The row's JSON object without its opening brace and its line end.
        assert(
            bytes.first == UInt8(ascii: "{") && bytes.last == UInt8(ascii: "\n"),
            "a row is one object on a line")
        let columns = String(decoding: bytes.dropFirst().dropLast(), as: UTF8.self)
        var line = JSONLine()
        line.add("ledger", ledger)
        if let part { line.add("part", UInt64?(UInt64(part.index))) }
        if let same { line.add("same_as", same) }
        return line.object.dropLast() + "," + columns
    }
}

extension [FoundRow] {
    /// Adds rows of another ledger. If a row is a notification that was found before, it gets the
    /// directory of the first ledger that has it.
    public mutating func add(_ rows: [FoundRow]) {
        let known = self
        for var row in rows {
            row.same = known.first { $0.list == row.list && $0.row.row == row.row.row }?.ledger
            append(row)
        }
    }
}

extension LedgerReader {
    /// Returns the rows with an apns-id or a token.
    ///
    /// - Parameters:
    ///   - notificationID: An apns-id as text; nil for any apns-id.
    ///   - token: A device token as text; nil for any token.
    ///   - tokens: Path of the list that was sent; nil: the path from which the run read it, if it
    ///     exists.
    public func find(
        notificationID: String?, token: String?, tokens: String?
    ) throws(BroadsideError) -> [FoundRow] {
        var identifier: NotificationID?
        var wanted: LedgerSearch.Wanted?
        if let notificationID {
            guard let parsed = NotificationID(parsing: Array(notificationID.utf8).rawSpan)
            else {
                throw .usage(
                    "apns-id",
                    "'\(wordExcerpt(notificationID))' is not an apns-id: copy all 36 characters")
            }
            identifier = parsed
            wanted = .row(parsed.row)
        }
        if let token {
            guard let digits = canonicalToken(token) else {
                throw notDeviceToken(token, option: "token")
            }
            wanted = .token(
                digits, fingerprint: TokenText.fingerprint(digits.rawSpan))
        }
        guard let wanted else { return [] }
        try refuseOneList(tokens)
        var found: [FoundRow] = []
        for ledger in ledgers {
            if let identifier {
                let manifest = ledger.manifest
                guard identifier.campaign == manifest.campaignNumber,
                    identifier.part == manifest.identity.partNumber
                else { continue }
            }
            let path = manifest.holdsParts ? ledger.directory.path : directory.path
            let (campaign, identity) = (ledger.manifest.campaign, ledger.manifest.identity)
            let list = "\(campaign) \(identity.partNumber) \(identity.shard?.index ?? 0)"
            found += try search(for: wanted, ledger, tokens: tokens).map {
                FoundRow(ledger: path, part: identity.part, row: $0, list: list)
            }
        }
        return found
    }

    private func search(
        for wanted: LedgerSearch.Wanted,
        _ ledger: (directory: LedgerDirectory, manifest: Manifest), tokens: String?
    ) throws(BroadsideError) -> [ExportRow] {
        let (campaign, identity) = (ledger.manifest.campaignNumber, ledger.manifest.identity)
        let search = LedgerSearch(
            for: wanted, acceptsBySilence: identity.acceptsBySilence, split: identity.split,
            hasTopics: identity.hasRowTopics,
            reasonText: { Reason(rawValue: $0)?.text ?? "reason \($0)" },
            appendNotificationID: { row, bytes in
                // Only requests to the provider API have an apns-id.
                guard identity.hasNotificationIDs else { return }
                bytes += notificationIDText(
                    campaign: campaign, part: identity.partNumber, row: row)
            })
        let index = try index(ledger)
        let rowCount = ledger.manifest.rowCount
        // A ledger without tokens has nothing to compare the wanted token with.
        let needsList = if case .token = wanted { !identity.keepsTokens } else { false }
        if let list = try openList(tokens, of: ledger) {
            do throws(LedgerError) {
                var reader = ListPartReader(list: list)
                return try search.run(index, rowCount: rowCount, list: &reader)
            } catch {
                // Another list under the same path would give wrong results, so only the ledger is
                // used.
                guard tokens == nil, error.code == .badList || error.code == .faultyList else {
                    throw unreadable(error, ledger.directory, tokens: tokens)
                }
                if error.code == .faultyList {
                    standardError(
                        "broadside: warning: \(error.detail): until this is corrected, line "
                            + "numbers and unsettled rows are not shown")
                } else if !needsList {
                    standardError(
                        "broadside: warning: \(list.name) is not the list that was sent: name "
                            + "that list with --tokens to see line numbers and unsettled rows")
                }
            }
        } else if tokens == nil, !needsList, let path = try missingList(of: ledger) {
            standardErrorLine(
                "broadside: warning: \(path) is missing: name the list that was sent with --tokens "
                    + "to see line numbers and unsettled rows")
        }
        guard !needsList else {
            throw .usage(
                "ledger",
                "\(ledger.directory.path) keeps no tokens (--keep-tokens no): use --tokens to name "
                    + "the list that was sent")
        }
        do throws(LedgerError) {
            var none = NoLedgerList()
            return try search.run(index, rowCount: rowCount, list: &none)
        } catch {
            throw unreadable(error, ledger.directory, tokens: tokens)
        }
    }
}
