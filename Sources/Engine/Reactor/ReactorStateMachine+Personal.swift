import APNs
import Campaign
import HPACK
import HTTP2
import Support

/// Rows that have more of their own than their token: a payload, a collapse ID.
extension ReactorStateMachine where Records: ~Copyable {
    /// Makes and keeps what the row that was read last has of its own.
    ///
    /// - Returns: Why it can't be sent; nil where it can.
    mutating func personalize(_ tag: RowTag) -> Reason? {
        switch rows.chunks.personalize(with: &writer.personalizer) {
        case .invalid(let reason):
            return reason
        case .made(let shape):
            unsafe rows.slab.keep(writer.personalizer.lastPieces, shape: shape, of: tag)
            return nil
        }
    }

    /// How many requests may start now, so far as that is known before their payloads are.
    func personalCapacity(_ index: Int) -> Int {
        let capacity = connections[index].http.requestCapacity(payloadCount: 1)
        if capacity == 0, connections[index].http.mustSendInParts(payloadCount: 1) { return 1 }
        return capacity
    }

    /// Writes requests whose payloads differ: each is looked at by itself.
    mutating func writePersonalRequests(
        _ index: Int, budget: Int, staged: inout Int, limit: Int, now: Now
    ) -> Int {
        var written = 0
        while written < budget, let tag = takeRow(now) {
            let count = unsafe Int(rows.slab.state(tag).pointee.personal.payloadCount)
            var sends = count
            if connections[index].http.requestCapacity(payloadCount: count) == 0 {
                guard connections[index].http.mustSendInParts(payloadCount: count) else {
                    connections[index].limitedBy = .window
                    rows.putBack(tag)
                    break
                }
                sends = 0
            }
            guard
                writePersonal(
                    tag, index, isWhole: sends == count, staged: &staged, limit: limit, now: now)
            else {
                rows.putBack(tag)
                break
            }
            written += 1
        }
        return written
    }

    /// Writes a row's request, or the part of it that the windows let go.
    ///
    /// - Returns: False where the record has no room for it.
    private mutating func writePersonal(
        _ tag: RowTag, _ index: Int, isWhole: Bool, staged: inout Int, limit: Int, now: Now
    ) -> Bool {
        let state = unsafe rows.slab.state(tag)
        let shape = unsafe state.pointee.personal
        let payloadCount = Int(shape.payloadCount)
        var mirror = connections[index].mirror
        let (template, isKept) = personalTemplate(
            index, collapseCount: Int(shape.collapseCount), mirror: &mirror)
        defer { if !isKept { template.deallocate() } }
        guard limit - staged >= template.countLimit + payloadCount else { return false }
        let streamID: UInt32
        let dataCount: Int
        if isWhole {
            streamID = connections[index].http.openStream(tag: tag, payloadCount: payloadCount)
            dataCount = payloadCount
        } else {
            guard
                let opened = connections[index].http.openPartialStream(
                    tag: tag, payloadCount: payloadCount)
            else { return false }
            streamID = opened.streamID
            dataCount = opened.allowed
        }
        connections[index].mirror = mirror
        if !isKept { refreshTemplateKey(index) }
        let pieces = unsafe rows.slab.pieces(tag, scratch: writer.piecesScratch)
        let collapse = unsafe UnsafeRawBufferPointer(
            rebasing: pieces[(pieces.count - Int(shape.collapseCount))...])
        let at = unsafe writer.staging.baseAddress! + staged
        staged += unsafe template.write(
            token: rows.slab.tokenBytes(tag), row: state.pointee.row, collapse: collapse,
            streamID: streamID, dataCount: dataCount, payloadCount: payloadCount, to: at)
        let body = unsafe writer.staging.baseAddress! + staged
        if dataCount == payloadCount {
            unsafe writer.personalizer.writePayload(shape, pieces: pieces.baseAddress!, to: body)
        } else {
            unsafe writer.personalizer.writePayload(
                shape, pieces: pieces.baseAddress!, to: writer.payloadScratch.baseAddress!)
            unsafe body.copyMemory(from: writer.payloadScratch.baseAddress!, byteCount: dataCount)
        }
        staged += dataCount
        unsafe noteSent(state, now: now)
        return true
    }

    /// The HEADERS for a row on a connection; whether they are kept for others.
    private mutating func personalTemplate(
        _ index: Int, collapseCount: Int, mirror: inout DynamicTableMirror
    ) -> (template: PersonalTemplate, isKept: Bool) {
        var key = connections[index].templateKey
        key?.hasPersonalCollapse = collapseCount > 0
        if let key, let template = writer.personalTemplates.template(for: key) {
            return (template, true)
        }
        let (template, changedTable) = settings.personalTemplate(
            authorization: shared.authorization(), collapseCount: collapseCount,
            mirror: &mirror)
        guard !changedTable, let key else { return (template, false) }
        writer.personalTemplates.insert(template, for: key)
        return (template, true)
    }

    /// Goes on with bodies that a window had cut: written again from the row's pieces, which are the
    /// same as ever.
    mutating func stagePersonalContinuations(_ index: Int, staged: inout Int, limit: Int) {
        while unsafe limit - staged > RequestTemplate.frameHeaderCount + writer.payloadScratch.count
        {
            guard let piece = connections[index].http.nextContinuation() else { return }
            let shape = unsafe rows.slab.state(piece.tag).pointee.personal
            let pieces = unsafe rows.slab.pieces(piece.tag, scratch: writer.piecesScratch)
            unsafe writer.personalizer.writePayload(
                shape, pieces: pieces.baseAddress!, to: writer.payloadScratch.baseAddress!)
            let at = unsafe writer.staging.baseAddress! + staged
            unsafe FrameHeaderPatch.data(
                count: piece.count, isLast: piece.isLast, streamID: piece.streamID, at: at)
            unsafe (at + RequestTemplate.frameHeaderCount).copyMemory(
                from: writer.payloadScratch.baseAddress! + piece.offset, byteCount: piece.count)
            staged += RequestTemplate.frameHeaderCount + piece.count
        }
    }
}
