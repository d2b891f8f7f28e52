public import BroadsideRows

/// Numbers of the rows whose devices `ledger forget` erased before a run settled them. The list
/// still has the tokens of these rows, because a resume needs the whole list.
public struct ErasedRows: Sendable, Equatable {
    /// Maximum number of such rows in a ledger, which keeps the manifest small.
    public static let countLimit = 100_000

    /// The numbers, ascending.
    let numbers: [UInt64]

    init(_ numbers: [UInt64]) {
        assert(Self.areAscending(numbers))
        self.numbers = numbers
    }

    /// Whether each number is greater than the one before it.
    static func areAscending(_ numbers: [UInt64]) -> Bool {
        zip(numbers, numbers.dropFirst()).allSatisfy { $0 < $1 }
    }

    /// Whether there are no such rows.
    var isEmpty: Bool { numbers.isEmpty }

    /// Whether the device of a row was erased.
    func contains(_ row: UInt64) -> Bool { !rows(in: row..<(row + 1)).isEmpty }

    /// Returns the numbers in a range of rows.
    func rows(in range: Range<UInt64>) -> ArraySlice<UInt64> {
        let start = firstIndex(atLeast: range.lowerBound)
        var end = start
        while end < numbers.count, numbers[end] < range.upperBound { end += 1 }
        return numbers[start..<end]
    }

    /// Returns the index of the first number that is not smaller.
    private func firstIndex(atLeast row: UInt64) -> Int {
        var (low, high) = (0, numbers.count)
        while low < high {
            let middle = (low + high) / 2
            if numbers[middle] < row { low = middle + 1 } else { high = middle }
        }
        return low
    }

    /// Marks the rows of a chunk that no run reserved, so that they are settled without being sent.
    /// Rows of other shards keep their disposition. Call after all other rules have marked the
    /// chunk.
    public func mark(_ chunk: RowChunk) {
        guard !isEmpty else { return }
        let found = rows(in: chunk.start.row..<chunk.end.row)
        guard !found.isEmpty else { return }
        var dispositions =
            chunk.dispositions ?? Array(repeating: .send, count: chunk.rowCount)
        for row in found {
            let index = Int(row - chunk.start.row)
            switch dispositions[index] {
            case .settled, .beyondLimit, .erased: break
            case .send, .skipped, .notDue, .invalid:
                dispositions[index] = .erased(mayHaveBeenSent: false)
            case .sendAgain, .becomesUnknown:
                dispositions[index] = .erased(mayHaveBeenSent: true)
            }
        }
        chunk.dispositions = dispositions
        // The hash of a chunk of one row identifies the row's device.
        if chunk.rowCount == 1 { chunk.removeHash() }
    }
}
