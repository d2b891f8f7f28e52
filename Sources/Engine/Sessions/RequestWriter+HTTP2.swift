import BroadsideHPACK
import BroadsideHTTP2
import BroadsidePayloads

/// Requests over HTTP/2: from templates that connections share whose header tables agree.
///
///     prepare ---- a template for the table is there ------> any number of requests
///        |-------- none is, and the table stays -----------> laid down and kept; one request
///        '-------- the table changes with the request -----> laid down for one request
///
/// Requests with templated payloads differ in their form besides: each looks for its own template.
extension RequestWriter {
    /// How many requests may start now.
    func room(on http: borrowing ClientConnectionStateMachine) -> Int {
        let capacity = http.requestCapacity(payloadCount: payloadByteCountMin)
        // How much a templated payload has is known with its row.
        if capacity == 0, isTemplated, http.mustSendInParts(payloadCount: payloadByteCountMin) {
            return 1
        }
        return capacity
    }

    /// Whether a request may start now, in parts at least.
    func mayStart(on http: borrowing ClientConnectionStateMachine) -> Bool {
        room(on: http) > 0 || http.mustSendInParts(payloadCount: payloadByteCountMin)
    }

    /// Whether a request has to go in parts although there is no room for a whole one.
    func mustSplit(on http: borrowing ClientConnectionStateMachine) -> Bool {
        !isTemplated && http.mustSendInParts(payloadCount: payloadByteCountMin)
    }

    /// Gets ready for requests on a connection, in the record that is being filled.
    ///
    /// - Returns: How many it may hold at most.
    mutating func prepare(for session: borrowing HTTP2Session) -> Int {
        refreshKey(session.mirror)
        guard !isTemplated else {
            rowLimit = 0
            return .max
        }
        guard let key, let template = templates.template(for: key) else {
            return layDown(session.mirror)
        }
        current = template
        rowLimit = template.requestCountLimit
        return .max
    }

    // The mirror and not its layout: an optional 16-byte integer as a parameter by itself is read where
    // it is not aligned (Swift 6.3, debug builds).
    private mutating func refreshKey(_ mirror: borrowing DynamicTableMirror) {
        key = mirror.layout.map {
            TemplateKey(layout: $0, authorizationVersion: authorizationVersion)
        }
    }

    /// Lays down a request that inserts names into the server's table, or that tells a new table size;
    /// or the first of a form that no template is there for yet.
    @inline(never)
    private mutating func layDown(_ mirror: DynamicTableMirror) -> Int {
        var mirror = mirror
        let (template, changedTable) = settings.template(
            authorization: (authorization, authorizationVersion), mirror: &mirror)
        if !changedTable, let key {
            templates.insert(template, for: key)
        } else {
            trial = (template, mirror)
        }
        current = template
        rowLimit = template.requestCountLimit
        return 1
    }

    /// The requests of a record are written.
    @inline(__always)
    mutating func finish() {
        if trial != nil { endTrial() }
    }

    @inline(never)
    private mutating func endTrial() {
        trial?.template.deallocate()
        trial = nil
        current = nil
    }

    /// The request that a template was laid down for is written: the server's table has what it says.
    @inline(never)
    private mutating func commitTrial(to session: inout HTTP2Session) {
        if let trial { session.mirror = trial.mirror }
    }

    /// Opens a stream for a row and writes its request.
    @inline(__always)
    mutating func write(
        _ tag: RowTag, of slab: borrowing RowSlab, on session: inout HTTP2Session
    ) -> WriteOutcome {
        if isTemplated { return writeTemplated(tag, of: slab, on: &session) }
        guard let template = current else { preconditionFailure("no template is prepared") }
        let streamID = session.http.openStream(tag: tag, payloadCount: payloadLimit)
        // SAFETY: the reactor asks `hasRoom` before it takes a row: the record has room for the
        // template's `requestCountLimit`. The token stays while the slab is borrowed.
        recordCount += unsafe template.write(
            token: slab.tokenBytes(tag), row: slab[tag].row, streamID: streamID,
            to: recordEnd)
        if trial != nil { commitTrial(to: &session) }
        return .written
    }

    // MARK: In parts

    /// Gets ready for one request whose payload goes a part at a time.
    mutating func prepareParts(for session: borrowing HTTP2Session) {
        refreshKey(session.mirror)
        var mirror = session.mirror
        let (template, _) = settings.template(
            authorization: (authorization, authorizationVersion), mirror: &mirror)
        trial = (template, mirror)
        current = template
        rowLimit = template.requestCountLimit
    }

    /// Writes a row's request and as much of its payload as the windows let go.
    ///
    /// - Returns: False if no stream may be opened.
    mutating func writeFirstPart(
        _ tag: RowTag, of slab: borrowing RowSlab, on session: inout HTTP2Session
    ) -> Bool {
        guard let template = current,
            let opened = session.http.openPartialStream(tag: tag, payloadCount: payloadLimit)
        else { return false }
        commitTrial(to: &session)
        // SAFETY: as in `write`; a stream lets no more of a payload go than it was opened with.
        recordCount += unsafe template.write(
            token: slab.tokenBytes(tag), row: slab[tag].row,
            streamID: opened.streamID, dataCount: opened.allowed, to: recordEnd)
        return true
    }

    /// Continues payloads that a window had cut; a templated one is written again from the row's
    /// field values, which are the same as ever.
    mutating func writeContinuations(
        of slab: borrowing RowSlab, on http: inout ClientConnectionStateMachine
    ) {
        while recordRoom > RequestTemplate.frameHeaderCount + payloadLimit {
            guard let piece = http.nextContinuation() else { return }
            // SAFETY: the record has room for a frame header and the largest payload. The stream is
            // open, so that the tag is still its row's, whose payload has as many bytes as the
            // stream was opened with; a piece lies inside them.
            let payload = unsafe payload(of: piece.tag, in: slab)
            let at = unsafe recordEnd
            unsafe FrameHeaderPatch.data(
                count: piece.count, isLast: piece.isLast, streamID: piece.streamID, at: at)
            unsafe (at + RequestTemplate.frameHeaderCount).copyMemory(
                from: payload.baseAddress! + piece.offset, byteCount: piece.count)
            recordCount += RequestTemplate.frameHeaderCount + piece.count
        }
    }

    // MARK: Templated

    /// Writes a request whose payload is the row's own, or the part of it that the windows let go.
    @inline(never)
    private mutating func writeTemplated(
        _ tag: RowTag, of slab: borrowing RowSlab, on session: inout HTTP2Session
    ) -> WriteOutcome {
        let collapseCount = Int(slab[tag].personal.collapseCount)
        if let key = personalKey(collapseCount: collapseCount),
            let template = personalTemplates.template(for: key)
        {
            return write(tag, of: slab, with: template, on: &session)
        }
        return writeLaidDown(tag, of: slab, collapseCount: collapseCount, on: &session)
    }

    /// Lays down the HEADERS that a row needs, and writes its request. They are kept for others,
    /// unless they change the server's table.
    @inline(never)
    private mutating func writeLaidDown(
        _ tag: RowTag, of slab: borrowing RowSlab, collapseCount: Int,
        on session: inout HTTP2Session
    ) -> WriteOutcome {
        var mirror = session.mirror
        let (template, changedTable) = settings.personalTemplate(
            authorization: (authorization, authorizationVersion), collapseCount: collapseCount,
            mirror: &mirror)
        if !changedTable, let key = personalKey(collapseCount: collapseCount) {
            personalTemplates.insert(template, for: key)
            return write(tag, of: slab, with: template, on: &session)
        }
        defer { template.deallocate() }
        let outcome = write(tag, of: slab, with: template, on: &session)
        if outcome == .written {
            session.mirror = mirror
            refreshKey(mirror)
        }
        return outcome
    }

    private func personalKey(collapseCount: Int) -> TemplateKey? {
        var key = key
        key?.hasPersonalCollapse = collapseCount > 0
        return key
    }

    private mutating func write(
        _ tag: RowTag, of slab: borrowing RowSlab, with template: PersonalTemplate,
        on session: inout HTTP2Session
    ) -> WriteOutcome {
        let shape = slab[tag].personal
        let payloadCount = Int(shape.payloadCount)
        let isWhole = session.http.requestCapacity(payloadCount: payloadCount) > 0
        guard isWhole || session.http.mustSendInParts(payloadCount: payloadCount) else {
            return .windowFull
        }
        guard recordRoom >= template.countLimit + payloadCount else { return .recordFull }
        let streamID: UInt32
        let dataCount: Int
        if isWhole {
            streamID = session.http.openStream(tag: tag, payloadCount: payloadCount)
            dataCount = payloadCount
        } else {
            guard
                let opened = session.http.openPartialStream(tag: tag, payloadCount: payloadCount)
            else { return .windowFull }
            streamID = opened.streamID
            dataCount = opened.allowed
        }
        // SAFETY: the record was checked to have room for `countLimit` and the whole payload. A
        // collapse ID ends the pieces; they and the token stay while the slab is borrowed and no
        // other row's are asked for. A stream lets no more of a payload go than it was opened with.
        let fieldValues = unsafe fieldValues(of: tag, in: slab)
        let collapse = unsafe UnsafeRawBufferPointer(
            rebasing: fieldValues[(fieldValues.count - Int(shape.collapseCount))...])
        recordCount += unsafe template.write(
            token: slab.tokenBytes(tag), row: slab[tag].row, collapse: collapse,
            streamID: streamID, dataCount: dataCount, payloadCount: payloadCount, to: recordEnd)
        // What the windows do not let go yet is written over by what follows in the record.
        unsafe writePayload(shape, pieces: fieldValues, to: recordEnd)
        recordCount += dataCount
        return .written
    }
}
