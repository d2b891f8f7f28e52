/// The display of progress during a run.
public enum ProgressMode: String, Sendable, CaseIterable {
    /// A live view if stderr is a terminal, otherwise a plain line every few seconds.
    case auto
    /// No progress. Warnings and the final message still go to stderr.
    case none
    /// One JSON object per second on stderr.
    case json
}

/// Format of the event log.
public enum EventLogFormat: String, Sendable, CaseIterable {
    /// One line of text per event, with its time first.
    case text
    /// One JSON object per event.
    case json
}
