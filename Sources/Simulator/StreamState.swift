/// What is known of a request until it is answered.
struct StreamState {
    var streamID: UInt32 = 0
    var verdict = Verdict()
    var identifier = NotificationIDText(repeating: 0)
    /// Octets of the body so far.
    var bodyCount = 0
    var isComplete = false
    /// The answer's body, while nghttp2 has not taken it.
    var responseBody = InlineArray<96, UInt8>(repeating: 0)
    var responseCount = 0
    var responseOffset = 0
    private var tokenCount = 0
    private var token = InlineArray<200, UInt8>(repeating: 0)

    /// Keeps a token's digits for the journal.
    mutating func setToken(_ digits: UnsafeRawBufferPointer) {
        precondition(digits.count <= 200)
        tokenCount = digits.count
        for position in 0..<tokenCount { unsafe token[position] = digits[position] }
    }

    /// The token's digits; none where the request had no well-formed token.
    func withToken(_ body: (UnsafeRawBufferPointer) -> Void) {
        let span = token.span
        unsafe span.withUnsafeBytes {
            unsafe body(UnsafeRawBufferPointer(rebasing: $0[..<tokenCount]))
        }
    }

    /// Forgets the request before.
    mutating func reset() {
        streamID = 0
        verdict = Verdict()
        bodyCount = 0
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
            return unsafe reused
        }
        let stream = UnsafeMutablePointer<StreamState>.allocate(capacity: 1)
        unsafe stream.initialize(to: StreamState())
        unsafe all.append(stream)
        return unsafe stream
    }

    /// Takes a stream back.
    mutating func giveBack(_ stream: UnsafeMutablePointer<StreamState>) {
        unsafe free.append(stream)
    }

    /// When the connection ends.
    mutating func deallocateAll() {
        for index in unsafe all.indices { unsafe all[index].deallocate() }
        unsafe all = unsafe []
        unsafe free = unsafe []
    }
}
