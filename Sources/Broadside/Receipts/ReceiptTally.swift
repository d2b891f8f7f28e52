import BroadsideLists
import BroadsideObservability
import BroadsideSupport

/// Counts devices and their first receipts. Takes records sorted by key: first the rows of a key,
/// then the receipts with the same key, ordered by time.
struct ReceiptTally {
    var findings: ReceiptFindings
    /// Number assigned to each value, by column.
    private var numbers: [[[UInt8]: Int]]

    private var key: UInt64?
    /// Whether a row with the current key was counted as sent.
    private var isSent = false
    /// Arm and settlement time of the first row with the current key that was accepted or held out;
    /// nil if there is no such row.
    private var row: (arm: Int, settled: UInt64)?
    private var isOpened = false

    init(_ findings: ReceiptFindings) {
        self.findings = findings
        numbers = findings.columns.map { _ in [:] }
    }

    /// Returns the number assigned to a column's value. At the limit, all further values share the
    /// last number.
    mutating func number(of value: [UInt8], _ column: Int) -> Int {
        if let known = numbers[column][value] { return known }
        let count = findings.columns[column].values.count
        guard count < ReceiptsJoin.valueLimit else {
            if count == ReceiptsJoin.valueLimit {
                findings.columns[column].values.append(ReceiptsJoin.otherValues)
            }
            return ReceiptsJoin.valueLimit
        }
        numbers[column][value] = count
        findings.columns[column].values.append(String(decoding: value, as: UTF8.self))
        assert(numbers[column].count == count + 1, "each value has one number")
        return count
    }

    /// Counts a receipt that can't be read.
    ///
    /// - Parameters:
    ///   - fault: Problem of the line, beginning with a verb.
    ///   - value: The value that can't be read; nil to show none, as for tokens.
    mutating func noteUnreadable(line: UInt64, _ fault: String, value: [UInt8]?) {
        findings.unreadable += 1
        guard findings.firstUnreadable == nil else { return }
        let shown = value.map { " (\(wordExcerpt(String(decoding: $0, as: UTF8.self))))" } ?? ""
        findings.firstUnreadable = "line \(line) \(fault)\(shown)"
    }

    mutating func take(_ record: RecordSorter.Record) {
        if key != record.first {
            key = record.first
            row = nil
            isSent = false
            isOpened = false
        }
        guard !record.isReceipt else { return takeReceipt(record) }
        // Another row of the same device does not count as another device.
        let arm = Int(record.fourth) - 1
        if !isSent {
            isSent = true
            findings.arms[arm].sent += 1
        }
        if row == nil, record.third != RecordSorter.Record.notAccepted {
            row = (arm, record.third)
            findings.arms[arm].devices += 1
        }
    }

    private mutating func takeReceipt(_ record: RecordSorter.Record) {
        guard let row else {
            findings.foreign += 1
            return
        }
        guard record.third >= row.settled else {
            findings.early += 1
            return
        }
        guard !isOpened else {
            findings.repeated += 1
            return
        }
        isOpened = true
        findings.arms[row.arm].opened += 1
        let hour = (record.third - row.settled) / 3_600_000
        findings.arms[row.arm].hours[Int(min(hour, UInt64(ReceiptFindings.hourCount)))] += 1
        for column in findings.columns.indices {
            let value = Int(record.fourth >> UInt64(8 * column) & 0xFF)
            while findings.arms[row.arm].values[column].count <= value {
                findings.arms[row.arm].values[column].append(0)
            }
            findings.arms[row.arm].values[column][value] += 1
        }
    }

    /// The findings, after all records.
    func finish() -> ReceiptFindings {
        assert(
            findings.arms.allSatisfy { $0.opened <= $0.devices }, "each device opens once at most")
        let left = findings.repeated + findings.foreign + findings.early + findings.unreadable
        assert(
            findings.arms.reduce(left) { $0 + $1.opened } == findings.receipts,
            "each receipt is counted once")
        return findings
    }
}

extension RecordSorter.Record {
    /// Time of a row that was not accepted. Such a row sorts after the accepted rows of its key.
    fileprivate static var notAccepted: UInt64 { .max }

    /// Record of a row.
    ///
    /// - Parameter settled: Time of the verdict, milliseconds since 1970; nil if the row was sent
    ///   and not accepted.
    static func row(_ key: UInt64, _ arm: UInt8, settled: UInt64?) -> Self {
        .init(first: key, second: 0, third: settled ?? notAccepted, fourth: UInt64(arm))
    }

    /// Record of a receipt, sorted after the rows with its key.
    static func receipt(_ key: UInt64, at milliseconds: UInt64, _ values: UInt64) -> Self {
        .init(first: key, second: 1, third: milliseconds, fourth: values)
    }

    fileprivate var isReceipt: Bool { second == 1 }
}
