/// Tools with which tests read a simulator's requests and choose its responses. All threads of an
/// endpoint share them. Each is nil if it is not in use.
struct Instruments: Sendable {
    var received: ReceivedLog?
    var outcomes: ChosenOutcomes?
    var expiredTokens: ExpiredTokens?
    var recording: ResponseFile?
    var replay: Replay?

    /// Whether a request's device token is needed once the request is complete.
    var needTokens: Bool {
        received != nil || outcomes != nil || recording != nil || replay != nil
    }
}
