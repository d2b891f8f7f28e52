package import BroadsideRows
package import BroadsideSupport

/// Returns the states that `--retry` names, such as `failed,unknown`.
package func reopenedStates(_ text: String) throws(BroadsideError) -> ReopenedStates {
    var states: ReopenedStates = []
    for name in text.split(separator: ",", omittingEmptySubsequences: false) {
        switch name {
        case "failed": states.insert(.failed)
        case "unknown": states.insert(.unknown)
        default:
            throw .usage(
                "retry", "'\(name)' is unknown: write failed, unknown, or both as failed,unknown")
        }
    }
    return states
}

extension ReopenedStates {
    /// The states as `--retry` names them.
    var optionText: String {
        [(ReopenedStates.failed, "failed"), (.unknown, "unknown")]
            .filter { contains($0.0) }.map(\.1).joined(separator: ",")
    }
}
