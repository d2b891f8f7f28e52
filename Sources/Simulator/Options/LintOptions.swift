/// The treatment of a deviation found by the HPACK lint.
public enum HPACKLintMode: String, Sendable, CaseIterable {
    /// Count deviations and report them at the end.
    case report
    /// End a connection with GOAWAY at its first deviation.
    case refuse
    /// Do not check.
    case off
}

/// The treatment of bodies that are compressed or are not JSON dictionaries.
public enum PayloadLintMode: String, Sendable, CaseIterable {
    /// Count them and report them at the end.
    case report
    /// Reject them with 400 PayloadEmpty, on the legacy gateway with status 4.
    case refuse
    /// Do not check.
    case off
}
