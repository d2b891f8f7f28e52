public import BroadsideRows

/// How many rows are in which state, and why rows were not accepted.
public struct RowCounts: Sendable, Equatable {
    /// By the raw value of the state: fixed in size, as a reactor counts each row here.
    @usableFromInline var numbers = InlineArray<8, UInt64>(repeating: 0)
    /// Rows that are settled and not accepted, by reason.
    public var reasons = ReasonCounts()

    /// No rows.
    public init() {}

    /// Rows in a state.
    @inlinable
    public subscript(_ state: RowState) -> UInt64 {
        get { numbers[Int(state.rawValue)] }
        set { numbers[Int(state.rawValue)] = newValue }
    }

    /// Rows that a request was made for.
    public var sent: UInt64 { self[.accepted] + self[.rejected] + self[.failed] + self[.unknown] }

    /// Rows with a final outcome.
    public var settled: UInt64 { sent + self[.invalid] + self[.skipped] }

    /// Counts a row that is settled otherwise than by 200, under a reason that has a code.
    public mutating func count(_ state: RowState, reason: UInt8) {
        precondition(state.isSettled, "an open row has no reason")
        self[state] += 1
        reasons.add(code: reason)
    }

    /// The same under a reason in the server's own words.
    public mutating func count(_ state: RowState, reasonText: RawSpan) {
        precondition(state.isSettled, "an open row has no reason")
        self[state] += 1
        reasons.add(text: reasonText)
    }

    /// Adds what another counted.
    public static func += (counts: inout RowCounts, other: RowCounts) {
        for state in other.numbers.indices { counts.numbers[state] += other.numbers[state] }
        counts.reasons.add(other.reasons)
    }

    /// Rows of both.
    public static func + (one: RowCounts, other: RowCounts) -> RowCounts {
        var sum = one
        sum += other
        return sum
    }

    /// Rows by which each state has grown; reasons are left out.
    public func since(_ earlier: RowCounts) -> RowCounts {
        var counts = RowCounts()
        for state in numbers.indices {
            counts.numbers[state] = numbers[state] - min(numbers[state], earlier.numbers[state])
        }
        return counts
    }

    /// Whether each state and each reason has as many rows in both.
    public static func == (one: RowCounts, other: RowCounts) -> Bool {
        one.numbers.indices.allSatisfy { one.numbers[$0] == other.numbers[$0] }
            && one.reasons == other.reasons
    }
}
