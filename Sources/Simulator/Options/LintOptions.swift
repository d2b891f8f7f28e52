/// How the HPACK lint goes about a deviation.
public enum HPACKLintMode: String, Sendable, CaseIterable {
    /// Count deviations and name them at the end.
    case report
    /// Answer the first deviation of a connection with GOAWAY.
    case refuse
    /// Do not look.
    case off
}

/// What is done about bodies that are compressed or are not JSON dictionaries.
public enum PayloadLintMode: String, Sendable, CaseIterable {
    /// Count them and name them at the end.
    case report
    /// Refuse them with 400 PayloadEmpty, on the legacy gateway with status 4.
    case refuse
    /// Do not look.
    case off
}
