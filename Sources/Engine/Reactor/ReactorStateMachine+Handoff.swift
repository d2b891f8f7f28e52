import Campaign
import Support

extension ReactorStateMachine where Records: ~Copyable {
    /// A reactor whose connections have all been gone for so long gives its rows to others.
    private static var patience: UInt64 { second }
    /// So many rows are given away at a time: those who take them over look every few milliseconds.
    private static var rowsAtOnce: Int { 4096 }

    /// Watches whether this reactor can send; where it can't for long and others can, its rows go to
    /// them.
    mutating func handOverRows(_ now: Now) {
        if let isAble = connections.noteAbility(now: now.nanoseconds) {
            run.resources.handoff.note(run.reactor, isAble: isAble)
        }
        guard case .running = phase, settings.reactors > 1, let since = connections.disabledSince,
            now.nanoseconds - min(now.nanoseconds, since) >= Self.patience
        else { return }
        var room = min(run.resources.handoff.room(for: run.reactor), Self.rowsAtOnce)
        while room > 0 {
            guard let tag = takeOwnRow(now) else {
                leaveRate()
                return
            }
            guard giveAway(tag) else {
                rows.requeue(tag)
                return
            }
            room -= 1
        }
    }

    /// This reactor has rows: others stay until it has none, as they may have to send them.
    mutating func noteRows() {
        guard settings.reactors > 1, !rows.areNoted else { return }
        rows.areNoted = true
        run.resources.handoff.noteRows(of: run.reactor)
    }

    /// This reactor has no rows.
    ///
    /// - Returns: False if it has to stay, as others have some.
    mutating func leaveHandoff() -> Bool {
        rows.areNoted = false
        return run.resources.handoff.leave(run.reactor)
    }

    /// The next row that this reactor would send, were it able to.
    private mutating func takeOwnRow(_ now: Now) -> RowTag? {
        rows.takeAgain(now: now.nanoseconds) ?? takeListRow(now)
    }

    private mutating func giveAway(_ tag: RowTag) -> Bool {
        // SAFETY: the row is ours until it is given away; its token is copied.
        let row = unsafe RowHandoff.Row(
            state: rows.slab[tag], token: Array(rows.slab.tokenBytes(tag)),
            pieces: writer.values(of: tag, in: rows.slab))
        guard run.resources.handoff.put(row, from: run.reactor) else { return false }
        rows.slab.free(tag)
        return true
    }

    /// A row that another reactor could not send.
    mutating func takeHandedOverRow() -> RowTag? {
        guard run.resources.handoff.hasRows, !rows.slab.isFull else { return nil }
        return takeRowOfOthers()
    }

    /// Apart from the check, which is made for each row.
    @inline(never)
    private mutating func takeRowOfOthers() -> RowTag? {
        // Before it is taken: in no instant does nobody have it.
        noteRows()
        guard let row = run.resources.handoff.take() else { return nil }
        let tag = rows.slab.take()
        rows.slab[tag] = row.state
        rows.slab[tag].firstBlock = .max
        // SAFETY: the tag was just taken, and the token is what `tokenBytes` had of another
        // reactor's row: no more than a place has room for.
        unsafe rows.slab.token(tag).copyMemory(from: row.token, byteCount: row.token.count)
        writer.keep(row.state, values: row.pieces, of: tag, in: &rows.slab)
        return tag
    }
}
