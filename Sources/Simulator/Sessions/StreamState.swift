internal import BroadsidePrimitives
internal import BroadsideSupport

/// The state of a request until its response is sent.
struct StreamState {
    var streamID: UInt32 = 0
    var verdict = Verdict()
    var identifier = NotificationIDText(repeating: 0)
    /// Bytes of the body received so far.
    var bodyCount = 0
    /// The beginning of the body, up to the payload limit, if payloads are checked.
    private var body: [UInt8] = []
    var claimsCompression = false
    var isComplete = false
    /// True if the stream was reset because of its header block, so that the request is ignored.
    var isMalformed = false
    /// True once the client has reset the stream.
    var isResetByClient = false
    /// Number of body bytes for which no credit was returned to the stream's window.
    var uncreditedBytes = 0
    /// The header fields needed to store the notification; nil if there is no store.
    var envelope: Envelope?
    /// The exchange, if the request is about channels; nil for a device push.
    var channel: ChannelExchange?
    /// The request as it was received, if requests are kept.
    var received: ReceivedRequest?
    /// True from the beginning of the stream to its end.
    var isOpen = false
    /// The response body until nghttp2 has read it.
    private var responseBody = InlineArray<96, UInt8>(repeating: 0)
    private var responseCount = 0
    private var responseOffset = 0
    private var tokenCount = 0
    private var token = InlineArray<200, UInt8>(repeating: 0)

    /// Keeps bytes of the body up to the payload limit.
    mutating func keepBody(_ bytes: RawSpan) {
        let room = verdict.payloadLimit - body.count
        if verdict.early == nil, room > 0 { body += Array(bytes.extracting(first: room)) }
    }

    /// The beginning of the body, up to the payload limit. Empty unless payloads are checked.
    var keptBody: [UInt8] { body }

    /// The defect of the body; nil if it has none, or if the body was not kept as a whole.
    var bodyFinding: RequestFinding? {
        guard verdict.early == nil, bodyCount > 0, bodyCount == body.count else { return nil }
        return RequestFinding(body: body, claimsCompression: claimsCompression)
    }

    /// Keeps a token's digits for the journal.
    mutating func setToken(_ digits: RawSpan) {
        precondition(digits.byteCount <= 200)
        tokenCount = digits.byteCount
        for position in 0..<tokenCount { token[position] = digits[position] }
    }

    /// The token's digits; empty if the request had no well-formed token.
    var tokenDigits: RawSpan {
        @_lifetime(borrow self) get { token.span.rawBytes.extracting(first: tokenCount) }
    }

    /// Keeps the response body.
    mutating func setResponse(_ bytes: RawSpan) {
        responseCount = bytes.byteCount
        for position in 0..<responseCount { responseBody[position] = bytes[position] }
    }

    /// Whether the response body was read completely.
    var isResponseRead: Bool { channel?.isBodyRead ?? (responseOffset == responseCount) }

    /// Appends the next bytes of the response body to `target`, at most `most`.
    mutating func readResponse(into target: inout OutputRawSpan, most: Int) {
        if let channel { return channel.readBody(into: &target, most: most) }
        assert(responseOffset <= responseCount, "no more is read than was set")
        let end = min(responseCount, responseOffset + min(most, target.freeCapacity))
        while responseOffset < end {
            target.append(responseBody[responseOffset])
            responseOffset += 1
        }
    }

    /// A hash of the device token that does not depend on the case of its digits; nil if there is
    /// no token.
    var tokenFingerprint: UInt64? {
        guard tokenCount > 0 else { return nil }
        var hash = FNV1aHash.initial
        for position in 0..<tokenCount {
            hash = FNV1aHash.extend(hash, by: token[position] | 0x20)
        }
        return hash
    }

    /// Clears the state of the previous request.
    mutating func reset() {
        uncreditedBytes = 0
        envelope = nil
        channel = nil
        received = nil
        streamID = 0
        verdict = Verdict()
        bodyCount = 0
        body.removeAll(keepingCapacity: true)
        claimsCompression = false
        isComplete = false
        isMalformed = false
        isResetByClient = false
        responseCount = 0
        responseOffset = 0
        tokenCount = 0
    }
}

/// The index of a stream in its connection's slab, stored by nghttp2.
struct StreamIndex {
    let value: Int
}

/// The streams of one connection; released entries are reused.
struct StreamSlab {
    private var all: [StreamState] = []
    private var free: [StreamIndex] = []

    /// Returns a cleared entry.
    mutating func take() -> StreamIndex {
        let index: StreamIndex
        if let reused = free.popLast() {
            index = reused
            all[index.value].reset()
        } else {
            index = StreamIndex(value: all.count)
            all.append(StreamState())
        }
        assert(!all[index.value].isOpen, "a stream is taken once")
        all[index.value].isOpen = true
        return index
    }

    /// Releases an entry.
    mutating func giveBack(_ index: StreamIndex) {
        assert(all[index.value].isOpen, "a stream is given back once")
        all[index.value].isOpen = false
        free.append(index)
    }

    /// A stream returned by `take`.
    subscript(index: StreamIndex) -> StreamState {
        _read { yield all[index.value] }
        _modify { yield &all[index.value] }
    }

    /// The indices of all streams, open or not.
    var indices: [StreamIndex] { all.indices.map(StreamIndex.init) }
}
