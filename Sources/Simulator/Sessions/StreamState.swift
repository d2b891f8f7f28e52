internal import BroadsideSupport

/// What is known of a request until it is answered.
struct StreamState {
    var streamID: UInt32 = 0
    var verdict = Verdict()
    var identifier = NotificationIDText(repeating: 0)
    /// Bytes of the body so far.
    var bodyCount = 0
    /// As many of them as a payload may have, if somebody looks at payloads.
    private var body: [UInt8] = []
    var claimsCompression = false
    var isComplete = false
    /// Bytes of the body for which the stream's window has not been given back.
    var uncreditedBytes = 0
    /// What a device that is away would need to know; nil where nothing is stored.
    var envelope: Envelope?
    /// Between its begin and its end.
    var isOpen = false
    /// The answer's body, while nghttp2 has not taken it.
    private var responseBody = InlineArray<96, UInt8>(repeating: 0)
    private var responseCount = 0
    private var responseOffset = 0
    private var tokenCount = 0
    private var token = InlineArray<200, UInt8>(repeating: 0)

    /// Keeps bytes of the body that are within the limit for payloads.
    mutating func keepBody(_ bytes: RawSpan) {
        let room = verdict.payloadLimit - body.count
        if verdict.early == nil, room > 0 { body += Array(bytes.extracting(first: room)) }
    }

    /// What is wrong with the body, if it was kept as a whole.
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

    /// The token's digits; none where the request had no well-formed token.
    var tokenDigits: RawSpan {
        @_lifetime(borrow self) get { token.span.rawBytes.extracting(first: tokenCount) }
    }

    /// Keeps the answer's body.
    mutating func setResponse(_ bytes: RawSpan) {
        responseCount = bytes.byteCount
        for position in 0..<responseCount { responseBody[position] = bytes[position] }
    }

    /// The answer's body was read to its end.
    var isResponseRead: Bool { responseOffset == responseCount }

    /// The next bytes of the answer's body, at most `most` of them.
    mutating func readResponse(into target: inout OutputRawSpan, most: Int) {
        assert(responseOffset <= responseCount, "no more is read than was set")
        let end = min(responseCount, responseOffset + min(most, target.freeCapacity))
        while responseOffset < end {
            target.append(responseBody[responseOffset])
            responseOffset += 1
        }
    }

    /// What tells this device token from others, in digits of any case; nil where there is none.
    var tokenFingerprint: UInt64? {
        guard tokenCount > 0 else { return nil }
        var hash: UInt64 = 0xcbf2_9ce4_8422_2325
        for position in 0..<tokenCount {
            hash = (hash ^ UInt64(token[position] | 0x20)) &* 0x100_0000_01b3
        }
        return hash
    }

    /// Forgets the request before.
    mutating func reset() {
        uncreditedBytes = 0
        envelope = nil
        streamID = 0
        verdict = Verdict()
        bodyCount = 0
        body.removeAll(keepingCapacity: true)
        claimsCompression = false
        isComplete = false
        responseCount = 0
        responseOffset = 0
        tokenCount = 0
    }
}

/// Which of a connection's streams; nghttp2 keeps it for us.
struct StreamIndex {
    let value: Int
}

/// The streams of one connection, each used anew when it is given back.
struct StreamSlab {
    private var all: [StreamState] = []
    private var free: [StreamIndex] = []

    /// A forgotten stream.
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

    /// Takes a stream back.
    mutating func giveBack(_ index: StreamIndex) {
        assert(all[index.value].isOpen, "a stream is given back once")
        all[index.value].isOpen = false
        free.append(index)
    }

    /// A stream that `take` gave.
    subscript(index: StreamIndex) -> StreamState {
        _read { yield all[index.value] }
        _modify { yield &all[index.value] }
    }

    /// All streams, open or not.
    var indices: [StreamIndex] { all.indices.map(StreamIndex.init) }
}
