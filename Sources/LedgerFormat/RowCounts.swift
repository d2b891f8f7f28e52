public import BroadsideRows

/// Rows, counted by state. Rows that were not accepted are also counted by reason.
public struct RowCounts: Sendable, Equatable {
    /// Rows by the raw value of the state. The size is fixed, because a reactor counts each row
    /// here.
    @usableFromInline var numbers = InlineArray<8, UInt64>(repeating: 0)
    /// Settled rows that were not accepted, by reason.
    public var reasons = ReasonCounts()
    /// Settled rows by arm, if the campaign has arms.
    public var arms = ArmCounts()

    /// Creates empty counts.
    public init() {}

    /// Number of rows in a state.
    @inlinable
    public subscript(_ state: RowState) -> UInt64 {
        get { numbers[Int(state.rawValue)] }
        set { numbers[Int(state.rawValue)] = newValue }
    }

    /// Rows with at least one request.
    public var sent: UInt64 { self[.accepted] + self[.rejected] + self[.failed] + self[.unknown] }

    /// Rows with a final outcome.
    public var settled: UInt64 { sent + self[.invalid] + self[.skipped] }

    /// Counts a settled row that was not accepted with 200, under a reason with a code.
    public mutating func count(_ state: RowState, reason: UInt8) {
        precondition(state.isSettled, "an open row has no reason")
        self[state] += 1
        reasons.add(code: reason)
    }

    /// Counts a settled row that was not accepted with 200, under the text of a reason without a
    /// code.
    public mutating func count(_ state: RowState, reasonText: RawSpan) {
        precondition(state.isSettled, "an open row has no reason")
        self[state] += 1
        reasons.add(text: reasonText)
    }

    /// Adds other counts.
    public static func += (counts: inout RowCounts, other: RowCounts) {
        for state in other.numbers.indices { counts.numbers[state] += other.numbers[state] }
        counts.reasons.add(other.reasons)
        counts.arms.add(other.arms)
    }

    /// Returns the sum of two counts.
    public static func + (one: RowCounts, other: RowCounts) -> RowCounts {
        var sum = one
        sum += other
        return sum
    }

    /// Returns the increase of each state's count since earlier counts, without reasons and arms.
    public func since(_ earlier: RowCounts) -> RowCounts {
        var counts = RowCounts()
        for state in numbers.indices {
            counts.numbers[state] = numbers[state] - min(numbers[state], earlier.numbers[state])
        }
        return counts
    }

    /// Whether all states, reasons and arms have the same counts.
    public static func == (one: RowCounts, other: RowCounts) -> Bool {
        one.numbers.indices.allSatisfy { one.numbers[$0] == other.numbers[$0] }
            && one.reasons == other.reasons && one.arms == other.arms
    }
}
