/// Tools with which tests read a simulator's requests and choose its responses. All threads of an
/// endpoint share these tools. A tool that is not in use is nil.
struct Instruments: Sendable {
    var received: ReceivedLog?
    var outcomes: ChosenOutcomes?
    var expiredTokens: ExpiredTokens?
    var recording: ResponseFile?
    var replay: Replay?

    /// Whether a tool needs the device token of a request when the request is complete.
    var needTokens: Bool {
        received != nil || outcomes != nil || recording != nil || replay != nil
    }
}
