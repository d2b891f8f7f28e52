import Campaign
import Support

extension ReactorStateMachine where Records: ~Copyable {
    /// Has the connection's session write requests of rows into the record.
    ///
    /// - Returns: How many were written.
    mutating func writeRequests(_ index: Int, budget: Int, now: Now) -> Int {
        followAuthorization()
        let most = min(budget, connections[index].session.prepare(&writer))
        var written = 0
        while written < most, writer.hasRoom, let tag = takeRow(now) {
            let outcome = connections[index].session.write(tag, of: rows.slab, with: &writer)
            guard outcome == .written else {
                if outcome == .windowFull { connections[index].limitedBy = .window }
                rows.putBack(tag)
                break
            }
            noteSent(tag, now: now)
            written += 1
        }
        writer.finish()
        return written
    }

    /// A server whose windows never hold a whole payload still gets its requests, a part at a time.
    mutating func stageFirstPart(_ index: Int, now: Now) {
        guard connections[index].session.mustSplit(writer), initialAllowance > 0,
            admission.limiter.allowance(now: now.nanoseconds) > 0,
            connections[index].rateLimiter.allowance(now: now.nanoseconds) > 0
        else { return }
        followAuthorization()
        connections[index].session.prepareParts(&writer)
        defer { writer.finish() }
        guard writer.hasRoom, let tag = takeRow(now) else { return }
        guard connections[index].session.writeFirstPart(tag, of: rows.slab, with: &writer) else {
            rows.requeue(tag)
            return
        }
        noteSent(tag, now: now)
        joinRate()
        admission.limiter.take(1, now: now.nanoseconds)
        connections[index].rateLimiter.take(1, now: now.nanoseconds)
    }

    /// Requests carry the provider token that the run has now.
    private mutating func followAuthorization() {
        if writer.isOutdated(run.directives.authorization.version) { renewAuthorization() }
    }

    /// Apart from the check, which is made for each record.
    @inline(never)
    private mutating func renewAuthorization() { writer.follow(run.directives.authorization) }

    private mutating func noteSent(_ tag: RowTag, now: Now) {
        rows.slab[tag].sentNanoseconds = now.nanoseconds
        rows.slab[tag].authorizationVersion = writer.authorizationVersion
        let isRetry = rows.slab[tag].firstSentNanoseconds != 0
        if !isRetry { rows.slab[tag].firstSentNanoseconds = now.nanoseconds }
        rows.slab[tag].attempts += 1
        metrics.noteRequest(isRetry: isRetry)
        rows.inFlight += 1
    }
}
