import BroadsidePrimitives
import BroadsideRows
import BroadsideSupport

/// Converter of a ledger's rows to export rows, used by all readers.
struct RowDescriber {
    /// Returns the text of a reason's stable code.
    let reasonText: (UInt8) -> String
    /// Appends the apns-id of a row, by its number.
    let appendNotificationID: (UInt64, inout [UInt8]) -> Void
    /// Whether accepted rows have no status, because they had no response.
    let acceptsBySilence: Bool
    /// The campaign's arms; nil if it has none.
    var arms: ArmFinder?
    /// Whether rows name their topics.
    var hasTopics = false
    /// Whether rows have a column for the apns-unique-id.
    var hasUniqueIDs = false

    /// Describes a row of a loaded chunk.
    ///
    /// - Parameters:
    ///   - rowIndex: Index of the row in the chunk.
    ///   - listIndex: The row's index in `list`; nil if the list is unavailable.
    func describe(
        _ row: inout ExportRow, _ verdicts: borrowing ChunkVerdicts, at rowIndex: Int,
        listIndex: Int?, _ list: borrowing ListRows
    ) {
        let verdict = verdicts.rows[rowIndex]
        row.row = verdicts.firstRow + UInt64(rowIndex)
        row.line = if let listIndex { list.line(of: listIndex) } else { nil }
        row.token.removeAll(keepingCapacity: true)
        verdicts.appendToken(ofRow: rowIndex, to: &row.token)
        if case .text = verdict.token { TextExcerpt.mark(&row.token) }
        if row.token.isEmpty, let listIndex {
            let text = list.text(of: listIndex)
            if case .fingerprint(let fingerprint) = verdict.token,
                ErasedToken.isErased(fingerprint, text)
            {
                ErasedToken.appendPlaceholder(fingerprint, to: &row.token)
            } else {
                row.token.append(text)
            }
        }
        row.state = verdict.state
        let hasNone = verdict.status == 0 || (acceptsBySilence && verdict.state == .accepted)
        row.status = hasNone ? nil : verdict.status
        row.reason.removeAll(keepingCapacity: true)
        if let text = verdicts.reasonText(ofRow: rowIndex) {
            row.reason.append(contentsOf: text)
        } else if verdict.reason != 0 {
            row.reason.append(contentsOf: reasonText(verdict.reason).utf8)
        }
        row.topic = hasTopics ? verdicts.topic(ofRow: rowIndex) : nil
        row.uniqueID = hasUniqueIDs ? verdicts.uniqueID(ofRow: rowIndex) ?? [] : nil
        row.timestamp = verdict.timestamp
        row.attempts = verdict.attempts
        row.notificationID.removeAll(keepingCapacity: true)
        appendNotificationID(row.row, &row.notificationID)
        row.settledAtMilliseconds =
            verdict.state.isSettled ? verdict.settledAtMilliseconds : nil
        let isToken = !verdict.isErased && listIndex.map { list.isToken($0) } ?? false
        describeArm(of: &row, recorded: verdict.arm, isToken: isToken)
    }

    /// - Parameters:
    ///   - recorded: Number of the arm in the ledger; 0 if there is none.
    ///   - isToken: Whether the text of the row is known to be a token.
    private func describeArm(of row: inout ExportRow, recorded: UInt8, isToken: Bool) {
        guard let arms else { return }
        let isOpen = recorded == 0 && isToken && !row.state.isSettled
        row.arm = arms.name(isOpen ? arms.arm(of: row.token.rawSpan) : recorded)
    }

    /// Describes a row that no run reserved.
    ///
    /// - Parameters:
    ///   - rowIndex: Index of the row in `list`; nil if the list is unavailable.
    ///   - isErased: Whether the row's device was erased.
    func describe(
        _ row: inout ExportRow, open number: UInt64, at rowIndex: Int?, _ list: borrowing ListRows,
        isErased: Bool
    ) {
        row.row = number
        row.line = if let rowIndex { list.line(of: rowIndex) } else { nil }
        row.token.removeAll(keepingCapacity: true)
        if isErased {
            ErasedToken.appendPlaceholder(ErasedToken.noHash[...], to: &row.token)
        } else if let rowIndex {
            row.token.append(list.text(of: rowIndex))
        }
        row.state = .remaining
        row.status = nil
        row.reason.removeAll(keepingCapacity: true)
        row.topic = hasTopics ? [] : nil
        row.uniqueID = hasUniqueIDs ? [] : nil
        row.timestamp = nil
        row.attempts = 0
        row.settledAtMilliseconds = nil
        row.notificationID.removeAll(keepingCapacity: true)
        appendNotificationID(number, &row.notificationID)
        describeArm(
            of: &row, recorded: 0,
            isToken: !isErased && rowIndex.map { list.isToken($0) } ?? false)
    }

    /// Describes a row by the record that settled it. The row gets no line, and an accepted row
    /// gets no token.
    ///
    /// - Parameters:
    ///   - row: Row to fill. The caller has already set the text of a reason without a code, or the
    ///     apns-unique-id.
    ///   - record: The verdict.
    ///   - reader: The reader whose latest record this is.
    func describe(
        _ row: inout ExportRow, _ record: LedgerRecord, _ reader: borrowing BlockReader
    ) {
        row.topic = hasTopics ? reader.topics[reader.topic] : nil
        switch record {
        case .reserve, .release, .releaseSome:
            assertionFailure("a reservation or release settles no row")
        case .accepted(let number, let fingerprint, let attempts, let milliseconds):
            row.row = number
            row.fingerprint = fingerprint
            row.state = .accepted
            row.status = acceptsBySilence ? nil : 200
            row.attempts = attempts
            row.settledAtMilliseconds = milliseconds
            row.uniqueID = hasUniqueIDs ? [] : nil
            describeArm(of: &row, recorded: 0, isToken: false)
        case .settled(let settled):
            row.row = settled.row
            row.state = settled.state
            let hasNone = settled.status == 0 || (acceptsBySilence && settled.state == .accepted)
            row.status = hasNone ? nil : settled.status
            row.uniqueID = hasUniqueIDs ? row.uniqueID ?? [] : nil
            if row.reason.isEmpty, settled.reason != 0 {
                row.reason.append(contentsOf: reasonText(settled.reason).utf8)
            }
            row.timestamp = settled.timestamp
            row.attempts = settled.attempts
            row.settledAtMilliseconds = settled.milliseconds
            describeArm(of: &row, recorded: settled.arm, isToken: false)
            switch settled.token {
            case .none: break
            case .fingerprint(let fingerprint): row.fingerprint = fingerprint
            case .text(let range):
                reader.copy(range, to: &row.token)
                TextExcerpt.mark(&row.token)
            case .bytes(let range):
                var packed: [UInt8] = []
                reader.copy(range, to: &packed)
                HexDigits.append(packed[...], to: &row.token)
            case .erased(let range):
                var hash: [UInt8] = []
                reader.copy(range, to: &hash)
                ErasedToken.appendPlaceholder(hash[...], to: &row.token)
            }
        }
        appendNotificationID(row.row, &row.notificationID)
    }
}
