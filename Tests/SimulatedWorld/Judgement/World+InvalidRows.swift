import Broadside
import Campaign

/// `--max-invalid` in a world: judged more often than in earnest, because lists are short.
extension World {
    static let invalidSchedule = InvalidRowsGuard.Schedule(first: 20, interval: 50)

    /// What a process counts rows with: those that earlier ones settled are read.
    func makeInvalidRowsGuard(_ states: [RowState], reopens: ReopenedStates) -> InvalidRowsGuard {
        let read = states.filter { $0.isSettled && !reopens.contains($0) }
        return InvalidRowsGuard(
            maximumPercent: isInvalidGivenUp ? 100 : scenario.maxInvalid, rows: UInt64(read.count),
            invalid: UInt64(read.count { $0 == .invalid }), schedule: Self.invalidSchedule)
    }

    /// The judgement at the list's end, as the command makes it.
    func judgeRowsAtEnd(of process: SimulatedProcess) {
        let heldBack = process.reactors.reduce(0) { $0 + $1.machine.snapshot().heldBack }
        guard process.coordinator.stopCause == nil, heldBack == 0 else { return }
        process.coordinator.judgeRowsAtEnd()
    }

    /// Holds what the guard did against the list.
    func judgeInvalidRows(_ states: [RowState], _ process: SimulatedProcess) {
        let cause = process.coordinator.stopCause
        let expected = expectedVerdict(process)
        guard case .tooManyInvalid(let count, let rows)? = cause else {
            // Another cause may have come first; rows that are held back keep the list from its end.
            let heldBack = process.reactors.reduce(0) { $0 + $1.machine.snapshot().heldBack }
            guard let expected, cause == nil, heldBack == 0 else { return }
            fail("\(expected) of the first rows is not noticed")
            return
        }
        isInvalidGivenUp = true
        // A list without any valid row is refused whatever the limit.
        if count < rows, Double(count) * 100 <= scenario.maxInvalid * Double(rows) {
            fail("the run stops for \(count) invalid rows of \(rows)")
        }
        // What earlier processes settled counts as read, behind this one's limit too.
        let read = process.statesAtStart.count { $0.isSettled && !process.reopens.contains($0) }
        let total = max(
            UInt64(read), scenario.limit(epoch: process.epoch) ?? UInt64(scenario.list.tokens.count)
        )
        var judgement = Self.invalidSchedule.first
        while Self.invalidSchedule.judgement(after: judgement) <= rows {
            judgement = Self.invalidSchedule.judgement(after: judgement)
        }
        let slack = scenario.reactors == 1 ? 0 : UInt64(scenario.reactors)
        let isExact = rows >= judgement && rows - judgement <= slack
        if !isExact, rows != total { fail("invalid rows are judged at row \(rows)") }
        guard isOrdered(process) else { return }
        guard case .tooMany(let invalid, let judged)? = expected, invalid == count, judged == rows
        else {
            fail("stopped for \(count) of \(rows) rows, expected \(String(describing: expected))")
            return
        }
        for row in Int(rows)..<states.count
        where states[row] != .remaining || !journal.copiesOfRow[row].isEmpty {
            fail("row \(row) is \(states[row].name), the run was to stop at row \(rows)")
        }
    }

    /// True where rows are read in the order of the list, all of them.
    private func isOrdered(_ process: SimulatedProcess) -> Bool {
        process.epoch == 1 && scenario.reactors == 1 && scenario.canary == nil
            && !process.hasDisorder
    }

    /// Where one reactor reads a list in order, what is found wrong, and after which row.
    private func expectedVerdict(_ process: SimulatedProcess) -> InvalidRowsGuard.Verdict? {
        guard isOrdered(process) else { return nil }
        var rows = InvalidRowsGuard(
            maximumPercent: scenario.maxInvalid, schedule: Self.invalidSchedule)
        let limit = scenario.limit(epoch: process.epoch).map { Int($0) } ?? .max
        for token in scenario.list.tokens.prefix(limit) {
            if let verdict = rows.note(isInvalid: token == nil) { return verdict }
        }
        switch rows.finish() {
        case .noValidRow(let rows): return .tooMany(invalid: rows, rows: rows)
        case .noRow, nil: return nil
        case let verdict?: return verdict
        }
    }
}
