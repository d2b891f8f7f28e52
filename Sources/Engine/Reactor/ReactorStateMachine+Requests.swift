import APNs
import Campaign
import HPACK
import HTTP2
import Support

extension ReactorStateMachine where Records: ~Copyable {
    mutating func refreshTemplateKey(_ index: Int) {
        let version = shared.authorizationVersion
        writer.follow(authorizationVersion: version)
        connections[index].templateKey = connections[index].mirror.layout.map {
            TemplateKey(layout: $0, authorizationVersion: version)
        }
    }

    mutating func writeRequests(
        _ index: Int, budget: Int, staged: inout Int, limit: Int, now: Now
    ) -> Int {
        guard let key = connections[index].templateKey,
            let template = writer.templates.template(for: key)
        else {
            return writeFirstRequest(index, staged: &staged, limit: limit, now: now)
        }
        let most = template.requestCountLimit
        let payloadCount = settings.payload.count
        var written = 0
        var at = unsafe writer.staging.baseAddress! + staged
        let end = unsafe writer.staging.baseAddress! + limit - most
        while written < budget, unsafe at <= end, let tag = takeRow(now) {
            let state = unsafe rows.slab.state(tag)
            let streamID = connections[index].http.openStream(tag: tag, payloadCount: payloadCount)
            unsafe at += template.write(
                token: rows.slab.tokenBytes(tag), row: state.pointee.row, streamID: streamID, to: at
            )
            unsafe noteSent(state, now: now)
            written += 1
        }
        staged = unsafe at - writer.staging.baseAddress!
        return written
    }

    /// A request that inserts names into the server's table, or that tells a new table size; or the
    /// first of a shape that no template was laid down for yet.
    @inline(never)
    private mutating func writeFirstRequest(
        _ index: Int, staged: inout Int, limit: Int, now: Now
    ) -> Int {
        var mirror = connections[index].mirror
        let (template, changedTable) = settings.template(
            authorization: shared.authorization(), mirror: &mirror)
        if !changedTable, let key = connections[index].templateKey {
            writer.templates.insert(template, for: key)
            return writeRequests(index, budget: 1, staged: &staged, limit: limit, now: now)
        }
        defer { template.deallocate() }
        guard limit - staged >= template.requestCountLimit, let tag = takeRow(now) else {
            return 0
        }
        connections[index].mirror = mirror
        let state = unsafe rows.slab.state(tag)
        let streamID = connections[index].http.openStream(
            tag: tag, payloadCount: settings.payload.count)
        staged += unsafe template.write(
            token: rows.slab.tokenBytes(tag), row: state.pointee.row, streamID: streamID,
            to: writer.staging.baseAddress! + staged)
        unsafe noteSent(state, now: now)
        return 1
    }

    /// A server whose windows never hold a whole payload still gets its requests, a piece at a time.
    mutating func stagePartialRequest(
        _ index: Int, staged: inout Int, limit: Int, now: Now
    ) {
        guard initialAllowance > 0, admission.limiter.allowance(now: now.nanoseconds) > 0,
            connections[index].pacer.allowance(now: now.nanoseconds) > 0,
            connections[index].http.mustSendInParts(payloadCount: settings.payload.count)
        else { return }
        refreshTemplateKey(index)
        var mirror = connections[index].mirror
        let (template, _) = settings.template(
            authorization: shared.authorization(), mirror: &mirror)
        defer { template.deallocate() }
        guard limit - staged >= template.requestCountLimit, let tag = takeRow(now) else {
            return
        }
        guard
            let opened = connections[index].http.openPartialStream(
                tag: tag, payloadCount: settings.payload.count)
        else {
            rows.requeue(tag)
            return
        }
        connections[index].mirror = mirror
        let state = unsafe rows.slab.state(tag)
        staged += unsafe template.write(
            token: rows.slab.tokenBytes(tag), row: state.pointee.row, streamID: opened.streamID,
            dataCount: opened.allowed, to: writer.staging.baseAddress! + staged)
        unsafe noteSent(state, now: now)
        admission.limiter.take(1, now: now.nanoseconds)
        connections[index].pacer.take(1, now: now.nanoseconds)
    }

    mutating func noteSent(_ state: UnsafeMutablePointer<PendingRow>, now: Now) {
        unsafe state.pointee.sentNanoseconds = now.nanoseconds
        unsafe state.pointee.authorizationVersion = writer.authorizationVersion
        let isRetry = unsafe state.pointee.firstSentNanoseconds != 0
        if !isRetry { unsafe state.pointee.firstSentNanoseconds = now.nanoseconds }
        unsafe state.pointee.attempts += 1
        metrics.noteRequest(isRetry: isRetry)
        rows.inFlight += 1
    }
}
