/// What tests use to look at a simulator's requests and to decide its responses, shared by all
/// threads of an endpoint; each is nil if it is not in use.
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
