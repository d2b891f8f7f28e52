internal import BroadsidePrimitives

/// Findings of `doctor`, one per check.
struct DoctorReport: Encodable {
    enum State: String, Encodable {
        case ok
        case warning
        case failed
    }

    struct Check: Encodable {
        var name: String
        var state: State
        /// Result of the check.
        var detail: String
        /// Advice about the result; nil if there is nothing to do.
        var advice: String?
    }

    var endpoint: String
    private(set) var outcome = State.ok
    private(set) var checks: [Check] = []

    init(endpoint: String) { self.endpoint = endpoint }

    mutating func add(
        _ name: String, _ state: State, _ detail: String, advice: String? = nil
    ) {
        checks.append(Check(name: name, state: state, detail: detail, advice: advice))
        if state == .failed || outcome == .ok { outcome = state }
    }

    /// Human-readable table.
    var text: String {
        var text = "endpoint     \(endpoint)\n"
        for check in checks {
            let name = check.name + String(repeating: " ", count: max(1, 13 - check.name.count))
            let state =
                check.state.rawValue
                + String(repeating: " ", count: 9 - check.state.rawValue.count)
            text += name + state + check.detail + "\n"
            if let advice = check.advice {
                text += String(repeating: " ", count: 22) + "-> " + advice + "\n"
            }
        }
        return text
    }

    /// JSON for programs.
    var json: String {
        guard let bytes = try? JSONCoding.encode(self, .pretty) else { return "{}\n" }
        return String(decoding: bytes, as: UTF8.self) + "\n"
    }
}
