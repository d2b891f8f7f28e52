import Broadside
import BroadsidePolicy
import BroadsideRows

/// `--max-invalid` in a simulation. Rows are checked more often than in a real run, because lists
/// are short.
extension Simulation {
    static let invalidSchedule = InvalidRowsGuard.Schedule(first: 20, interval: 50)

    /// Creates the guard of a process. Rows that earlier processes settled count as read. Rows that
    /// are not due were read, too, and are valid.
    ///
    /// - Parameter own: Rows that the process settled in its earlier passes.
    func makeInvalidRowsGuard(
        _ states: [RowState], reopens: ReopenedStates, own: Set<Int>, epoch: Int
    ) -> InvalidRowsGuard {
        func isRead(_ row: Int) -> Bool {
            states[row].isSettled && (own.contains(row) || !reopens.contains(states[row]))
        }
        let read = states.indices.filter(isRead)
        let end = plan.limit(epoch: epoch).map { Int($0) } ?? .max
        let waiting = states.indices.count { row in
            row < end && waits(row, epoch: epoch) && !isRead(row)
        }
        return InvalidRowsGuard(
            maximumPercent: isInvalidGivenUp ? 100 : plan.maxInvalid,
            rows: UInt64(read.count + waiting),
            invalid: UInt64(read.count { states[$0] == .invalid }), schedule: Self.invalidSchedule)
    }

    /// Performs the check at the list's end, in the same way as the command.
    func checkRowsAtEnd(of process: SimulatedProcess) {
        let heldBack = process.reactors.reduce(0) { $0 + $1.machine.snapshot().refusedByCredential }
        guard process.coordinator.stopCause == nil, heldBack == 0 else { return }
        process.coordinator.checkRowsAtEnd()
    }

    /// Compares the verdict of the guard with the list.
    func checkInvalidRows(_ states: [RowState], _ process: SimulatedProcess) {
        let cause = process.coordinator.stopCause
        let expected = expectedVerdict(process)
        guard case .tooManyInvalid(let count, let rows)? = cause else {
            // Another cause may have stopped the run first. Rows that are held back keep the run
            // from the list's end.
            let heldBack = process.reactors.reduce(0) {
                $0 + $1.machine.snapshot().refusedByCredential
            }
            guard let expected, cause == nil, heldBack == 0 else { return }
            fail("\(expected) of the first rows is not noticed")
            return
        }
        isInvalidGivenUp = true
        // A list without any valid row is refused, whatever the limit is.
        if count < rows, Double(count) * 100 <= plan.maxInvalid * Double(rows) {
            fail("the run stops for \(count) invalid rows of \(rows)")
        }
        // Rows that earlier processes settled count as read, also beyond this process's limit.
        let read = process.statesAtStart.indices.count {
            process.statesAtStart[$0].isSettled && !process.reopens(row: $0)
        }
        let total = max(
            UInt64(read), plan.limit(epoch: process.epoch) ?? UInt64(plan.list.tokens.count)
        )
        var check = Self.invalidSchedule.first
        while Self.invalidSchedule.check(after: check) <= rows {
            check = Self.invalidSchedule.check(after: check)
        }
        let slack = plan.reactors == 1 ? 0 : UInt64(plan.reactors)
        let isExact = rows >= check && rows - check <= slack
        if !isExact, rows != total { fail("invalid rows are checked at row \(rows)") }
        guard isOrdered(process) else { return }
        guard case .tooMany(let invalid, let checked)? = expected, invalid == count, checked == rows
        else {
            fail("stopped for \(count) of \(rows) rows, expected \(String(describing: expected))")
            return
        }
        for row in Int(rows)..<states.count
        where states[row] != .remaining || !journal.copiesOfRow[row].isEmpty {
            fail("row \(row) is \(states[row].name), the run was to stop at row \(rows)")
        }
    }

    /// Whether all rows are read in the order of the list.
    private func isOrdered(_ process: SimulatedProcess) -> Bool {
        process.epoch == 1 && plan.reactors == 1 && plan.canary == nil
            && !process.hasDisorder
    }

    /// Verdict that the guard must reach if one reactor reads the list in order.
    private func expectedVerdict(_ process: SimulatedProcess) -> InvalidRowsGuard.Verdict? {
        guard isOrdered(process) else { return nil }
        var rows = InvalidRowsGuard(
            maximumPercent: plan.maxInvalid, schedule: Self.invalidSchedule)
        let limit = plan.limit(epoch: process.epoch).map { Int($0) } ?? .max
        for token in plan.list.tokens.prefix(limit) {
            if let verdict = rows.note(isInvalid: token == nil) { return verdict }
        }
        switch rows.finish() {
        case .noValidRow(let rows): return .tooMany(invalid: rows, rows: rows)
        case .noRow, nil: return nil
        case let verdict?: return verdict
        }
    }
}
