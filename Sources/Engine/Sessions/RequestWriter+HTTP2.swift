import BroadsideAPNs
import BroadsideHPACK
import BroadsideHTTP2
import BroadsidePayloads

/// HTTP/2 requests from templates, which connections with equal header tables share.
///
/// - If there is a template for the connection's table, any number of requests use it.
/// - If there is no template, one request is encoded. The encoded request is kept as a template,
///   unless the request changes the table.
///
/// Requests with templated payloads also differ in their header fields. Each such request looks up
/// its own template.
extension RequestWriter {
    /// Number of requests that may start now.
    func room(on http: borrowing ClientConnectionStateMachine) -> Int {
        let capacity = http.requestCapacity(payloadCount: payloadByteCountMin)
        // The size of a templated payload is known only with its row.
        if capacity == 0, isTemplated, http.mustSendInParts(payloadCount: payloadByteCountMin) {
            return 1
        }
        return capacity
    }

    /// Whether a request may start now, at least in parts.
    func mayStart(on http: borrowing ClientConnectionStateMachine) -> Bool {
        room(on: http) > 0 || http.mustSendInParts(payloadCount: payloadByteCountMin)
    }

    /// Whether a request has to be sent in parts because a whole one does not fit.
    func mustSplit(on http: borrowing ClientConnectionStateMachine) -> Bool {
        !isTemplated && http.mustSendInParts(payloadCount: payloadByteCountMin)
    }

    /// Prepares for requests on a connection, in the current record.
    ///
    /// - Returns: Limit on requests in the record.
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

    // Takes the mirror, not its layout: an optional 16-byte integer that is a separate parameter is
    // read without the required alignment (Swift 6.3, debug builds).
    private mutating func refreshKey(_ mirror: borrowing DynamicTableMirror) {
        key = mirror.layout.map {
            TemplateKey(layout: $0, authorizationVersion: authorizationVersion)
        }
    }

    /// Encodes a request for which no template can be used. Such a request inserts names into the
    /// server's table, announces a new table size, or is the first of its form.
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

    /// Finishes the requests of a record.
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

    /// Updates the mirror after the use of a template for one request, because the server's table
    /// then contains the entries of that request.
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
        // SAFETY: the reactor checks `hasRoom` before it takes a row, so the record has room for
        // the template's `requestCountLimit`. The token stays in place while the slab is borrowed.
        recordCount += unsafe template.write(
            token: slab.tokenBytes(tag), row: slab[tag].row, streamID: streamID,
            to: recordEnd)
        assert(recordRoom >= 0, "a request fits into its record")
        if trial != nil { commitTrial(to: &session) }
        return .written
    }

    // MARK: In parts

    /// Prepares for one request whose payload is sent in parts.
    mutating func prepareParts(for session: borrowing HTTP2Session) {
        refreshKey(session.mirror)
        var mirror = session.mirror
        let (template, _) = settings.template(
            authorization: (authorization, authorizationVersion), mirror: &mirror)
        trial = (template, mirror)
        current = template
        rowLimit = template.requestCountLimit
    }

    /// Writes a row's request and as much of its payload as the windows allow.
    ///
    /// - Returns: False if no stream may be opened.
    mutating func writeFirstPart(
        _ tag: RowTag, of slab: borrowing RowSlab, on session: inout HTTP2Session
    ) -> Bool {
        guard let template = current,
            let opened = session.http.openPartialStream(tag: tag, payloadCount: payloadLimit)
        else { return false }
        commitTrial(to: &session)
        // SAFETY: as in `write`; a stream allows at most as many payload bytes as it was opened
        // with.
        recordCount += unsafe template.write(
            token: slab.tokenBytes(tag), row: slab[tag].row,
            streamID: opened.streamID, dataCount: opened.allowed, to: recordEnd)
        assert(recordRoom >= 0, "the first part of a request fits into its record")
        return true
    }

    /// Continues payloads that a window interrupted. A templated payload is rendered again from the
    /// row's unchanged field values. The response clock of a request counts from its last part.
    ///
    /// - Parameter now: Monotonic nanoseconds.
    mutating func writeContinuations(
        of slab: inout RowSlab, on http: inout ClientConnectionStateMachine, now: UInt64
    ) {
        while recordRoom > RequestTemplate.frameHeaderCount + payloadLimit {
            guard let piece = http.nextContinuation() else { return }
            // SAFETY: the record has room for a frame header and the largest payload. The stream is
            // open, so the tag still belongs to its row, whose payload has as many bytes as the
            // stream was opened with; a piece is within them.
            let payload = unsafe payload(of: piece.tag, in: slab)
            assert(piece.offset + piece.count <= payload.count, "a piece is a part of its payload")
            let at = unsafe recordEnd
            unsafe FrameHeaderPatch.data(
                count: piece.count, isLast: piece.isLast, streamID: piece.streamID, at: at)
            unsafe (at + RequestTemplate.frameHeaderCount).copyMemory(
                from: payload.baseAddress! + piece.offset, byteCount: piece.count)
            recordCount += RequestTemplate.frameHeaderCount + piece.count
            if piece.isLast { slab[piece.tag].sentNanoseconds = now }
        }
    }

    // MARK: Templated payloads

    /// Writes a request with the row's own payload, or the part of it that the windows allow.
    @inline(never)
    private mutating func writeTemplated(
        _ tag: RowTag, of slab: borrowing RowSlab, on session: inout HTTP2Session
    ) -> WriteOutcome {
        let shape = slab[tag].personal
        let collapseCount = Int(shape.collapseCount)
        if let key = personalKey(shape), let template = personalTemplates.template(for: key) {
            return write(tag, of: slab, with: template, on: &session)
        }
        return writeLaidDown(tag, of: slab, collapseCount: collapseCount, on: &session)
    }

    /// Encodes the HEADERS that a row needs and writes its request. The template is kept unless it
    /// changes the server's table.
    @inline(never)
    private mutating func writeLaidDown(
        _ tag: RowTag, of slab: borrowing RowSlab, collapseCount: Int,
        on session: inout HTTP2Session
    ) -> WriteOutcome {
        var mirror = session.mirror
        let (template, changedTable) = settings.personalTemplate(
            authorization: (authorization, authorizationVersion), collapseCount: collapseCount,
            topic: topics?.text(slab[tag].personal.topic),
            priority: priority(of: slab[tag].personal), mirror: &mirror)
        if !changedTable, let key = personalKey(slab[tag].personal) {
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

    /// Inlined, because a call for each row would copy the writer.
    @inline(__always)
    private func personalKey(_ shape: PayloadRenderer.Shape) -> TemplateKey? {
        var key = key
        key?.hasPersonalCollapse = shape.collapseCount > 0
        if topics != nil { key?.topic = UInt16(shape.topic) + 1 }
        key?.priority = armPriorities[Int(shape.arm)]
        return key
    }

    /// The priority of a row's arm, as text; nil if the campaign's priority applies.
    private func priority(of shape: PayloadRenderer.Shape) -> [UInt8]? {
        arms?.priority(of: shape.arm).map { Array("\($0.rawValue)".utf8) }
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
        // SAFETY: the record was checked to have room for `countLimit` and the whole payload. The
        // collapse ID is at the end of the field values; they and the token stay in place while the
        // slab is borrowed and no field values of another row are read. A stream allows at most as
        // many payload bytes as it was opened with.
        let fieldValues = unsafe fieldValues(of: tag, in: slab)
        let collapse = unsafe UnsafeRawBufferPointer(
            rebasing: fieldValues[(fieldValues.count - Int(shape.collapseCount))...])
        recordCount += unsafe template.write(
            token: slab.tokenBytes(tag), row: slab[tag].row, collapse: collapse,
            streamID: streamID, dataCount: dataCount, payloadCount: payloadCount, to: recordEnd)
        // The next request overwrites the payload bytes that the windows do not allow yet.
        unsafe writePayload(shape, pieces: fieldValues, to: recordEnd)
        recordCount += dataCount
        assert(recordRoom >= 0, "a request with its own payload fits into its record")
        return .written
    }
}
