/// What is shown while a run is in progress.
public enum ProgressMode: String, Sendable, CaseIterable {
    /// A live line where stderr is a terminal, a plain line now and then elsewhere.
    case auto
    /// Nothing; warnings and the last words still go to stderr.
    case none
    /// A JSON object a second on stderr.
    case json
}

/// How the event log is written.
public enum EventLogFormat: String, Sendable, CaseIterable {
    /// A line of words an event, after its time.
    case text
    /// A JSON object an event.
    case json
}
