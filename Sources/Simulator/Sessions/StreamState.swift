/// What is known of a request until it is answered.
struct StreamState {
    var streamID: UInt32 = 0
    var verdict = Verdict()
    var identifier = NotificationIDText(repeating: 0)
    /// Bytes of the body so far.
    var bodyCount = 0
    /// As many of them as a payload may have, if somebody looks at payloads.
    private var body: [UInt8] = []
    var isSaidToBeCompressed = false
    var isComplete = false
    /// Bytes of the body for which the stream's window has not been given back.
    var owedOctets = 0
    /// What a device that is away would need to know; nil where nothing is stored.
    var envelope: Envelope?
    /// Between its begin and its end.
    var isOpen = false
    /// The answer's body, while nghttp2 has not taken it.
    var responseBody = InlineArray<96, UInt8>(repeating: 0)
    var responseCount = 0
    var responseOffset = 0
    private var tokenCount = 0
    private var token = InlineArray<200, UInt8>(repeating: 0)

    /// Keeps bytes of the body that are within the limit for payloads.
    mutating func keepBody(_ bytes: UnsafeRawBufferPointer) {
        let room = verdict.payloadLimit - body.count
        if verdict.early == nil, room > 0 { unsafe body += bytes.prefix(room) }
    }

    /// What is wrong with the body, if it was kept as a whole.
    var bodyFinding: RequestFinding? {
        guard verdict.early == nil, bodyCount > 0, bodyCount == body.count else { return nil }
        return RequestFinding(body: body, isSaidToBeCompressed: isSaidToBeCompressed)
    }

    /// Keeps a token's digits for the journal.
    mutating func setToken(_ digits: UnsafeRawBufferPointer) {
        precondition(digits.count <= 200)
        tokenCount = digits.count
        // SAFETY: `digits` has as many, and `token` 200.
        for position in 0..<tokenCount { unsafe token[position] = digits[position] }
    }

    /// The token's digits; none where the request had no well-formed token.
    func withToken(_ body: (UnsafeRawBufferPointer) -> Void) {
        let span = token.span
        unsafe span.withUnsafeBytes {
            unsafe body(UnsafeRawBufferPointer(rebasing: $0[..<tokenCount]))
        }
    }

    /// The same as bytes.
    var tokenDigits: [UInt8] { (0..<tokenCount).map { token[$0] } }

    /// What tells this device token from others, in digits of any case; nil where there is none.
    var tokenMark: UInt64? {
        guard tokenCount > 0 else { return nil }
        var hash: UInt64 = 0xcbf2_9ce4_8422_2325
        for position in 0..<tokenCount {
            hash = (hash ^ UInt64(token[position] | 0x20)) &* 0x100_0000_01b3
        }
        return hash
    }

    /// Forgets the request before.
    mutating func reset() {
        owedOctets = 0
        envelope = nil
        streamID = 0
        verdict = Verdict()
        bodyCount = 0
        body.removeAll(keepingCapacity: true)
        isSaidToBeCompressed = false
        isComplete = false
        responseCount = 0
        responseOffset = 0
        tokenCount = 0
    }
}

/// The streams of one connection: each at an address of its own, which nghttp2 keeps for us, and
/// used anew when it is given back.
@safe struct StreamSlab {
    private var all: [UnsafeMutablePointer<StreamState>] = unsafe []
    private var free: [UnsafeMutablePointer<StreamState>] = unsafe []

    /// A forgotten stream.
    mutating func take() -> UnsafeMutablePointer<StreamState> {
        if let reused = unsafe free.popLast() {
            unsafe reused.pointee.reset()
            unsafe reused.pointee.isOpen = true
            return unsafe reused
        }
        let stream = UnsafeMutablePointer<StreamState>.allocate(capacity: 1)
        unsafe stream.initialize(to: StreamState())
        unsafe stream.pointee.isOpen = true
        unsafe all.append(stream)
        return unsafe stream
    }

    /// Takes a stream back.
    mutating func giveBack(_ stream: UnsafeMutablePointer<StreamState>) {
        unsafe stream.pointee.isOpen = false
        unsafe free.append(stream)
    }

    /// Visits each stream that is open.
    func forEachOpen(_ body: (UnsafeMutablePointer<StreamState>) -> Void) {
        for index in unsafe all.indices {
            let stream = unsafe all[index]
            if unsafe stream.pointee.isOpen { unsafe body(stream) }
        }
    }

    /// When the connection ends.
    mutating func deallocateAll() {
        for index in unsafe all.indices {
            unsafe all[index].deinitialize(count: 1)
            unsafe all[index].deallocate()
        }
        unsafe all = unsafe []
        unsafe free = unsafe []
    }
}
