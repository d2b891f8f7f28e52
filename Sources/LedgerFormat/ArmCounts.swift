public import BroadsideRows

/// Settled rows, counted by arm and state. No memory is allocated until a row with an arm is
/// counted.
public struct ArmCounts: Sendable, Hashable {
    /// The counts, indexed by the arm's number and then by the state's raw value.
    private var numbers: ContiguousArray<UInt64> = []

    private static var stateCount: Int { RowState.allCases.count }

    /// Creates empty counts.
    public init() {}

    /// Whether no row with an arm was counted.
    public var isEmpty: Bool { numbers.isEmpty }

    /// Number of an arm's rows in a state.
    public subscript(_ arm: UInt8, _ state: RowState) -> UInt64 {
        numbers.isEmpty ? 0 : numbers[Self.index(arm, state)]
    }

    /// Number of an arm's settled rows.
    public func settled(_ arm: UInt8) -> UInt64 {
        RowState.settledStates.reduce(0) { $0 + self[arm, $1] }
    }

    /// Counts rows of an arm. Rows without an arm (number 0) are not counted.
    public mutating func count(_ arm: UInt8, _ state: RowState, rows: UInt64 = 1) {
        guard arm != 0 else { return }
        precondition(state.isSettled, "an open row is not counted by its arm")
        if numbers.isEmpty {
            numbers = ContiguousArray(
                repeating: 0, count: (ArmSplit.armLimit + 1) * Self.stateCount)
        }
        numbers[Self.index(arm, state)] += rows
        assert(arm <= ArmSplit.armLimit, "an arm has one of the numbers that there are")
    }

    /// Adds other counts.
    public mutating func add(_ other: ArmCounts) {
        if numbers.isEmpty {
            self = other
            return
        }
        for index in other.numbers.indices { numbers[index] += other.numbers[index] }
    }

    /// Adds only the rows of `other` that are in this state.
    mutating func add(_ other: ArmCounts, in state: RowState) {
        guard !other.isEmpty, state.isSettled else { return }
        for arm in 1...UInt8(ArmSplit.armLimit) where other[arm, state] > 0 {
            count(arm, state, rows: other[arm, state])
        }
    }

    private static func index(_ arm: UInt8, _ state: RowState) -> Int {
        Int(arm) * stateCount + Int(state.rawValue)
    }
}
