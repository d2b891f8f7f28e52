/// Reaction to a deviation that the HPACK lint finds.
public enum HPACKLintMode: String, Sendable, CaseIterable {
    /// Count deviations and report them at the end.
    case report
    /// End a connection with GOAWAY at its first deviation.
    case refuse
    /// Do not check.
    case off
}

/// Treatment of a body that is compressed, or is not a JSON dictionary.
public enum PayloadLintMode: String, Sendable, CaseIterable {
    /// Count such bodies, and report their number at the end.
    case report
    /// Reject such bodies with 400 PayloadEmpty, or with status 4 on the legacy gateway.
    case refuse
    /// Do not check.
    case off
}
