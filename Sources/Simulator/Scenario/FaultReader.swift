internal import BroadsideAPNs
internal import BroadsidePrimitives

/// Parses one element of a scenario's `faults`.
enum FaultReader {
    private enum Kind: String, CaseIterable {
        case goaway, refuse, reset_stream, reset_connection, close, stall, settings, answer
        case expire_token, outage
    }

    static func read(_ value: JSON5Value) throws(ScenarioError) -> Fault {
        var fields = try ScenarioFields(value, "a fault")
        let kind = try fields.required(try fields.choice("do", Kind.self), "do")
        let action: Fault.Action
        switch kind {
        case .goaway: action = .goAway(try goAway(&fields))
        case .refuse: action = .refuse
        case .reset_stream: action = .resetStream(try code(&fields) ?? 2)
        case .reset_connection: action = .resetConnection
        case .close: action = .close
        case .stall: action = .stall(nanoseconds: try fields.duration("stall_for"))
        case .settings: action = .settings(try ScenarioReader.change(&fields))
        case .answer: action = .response(try response(&fields))
        case .expire_token: action = .expireToken
        case .outage: action = .outage
        }
        let trigger =
            kind == .outage ? try timeTrigger(&fields) : try requestTrigger(&fields)
        try fields.finish("a fault that does \"\(kind.rawValue)\"")
        return Fault(action: action, trigger: trigger)
    }

    private static func requestTrigger(
        _ fields: inout ScenarioFields
    ) throws(ScenarioError) -> Trigger {
        var trigger = try timeTrigger(&fields)
        let numbers: ClosedRange<UInt64> = 1...1_000_000_000_000
        trigger.scope = try fields.choice("scope", Trigger.Scope.self) ?? .connection
        trigger.at = try fields.integer("at", in: numbers)
        trigger.every = try fields.integer("every", in: numbers)
        trigger.count = try fields.integer("count", in: numbers) ?? 1
        trigger.share = try fields.number("share", in: 0...1)
        trigger.limit = try fields.integer("limit", in: numbers)
        return trigger
    }

    private static func timeTrigger(
        _ fields: inout ScenarioFields
    ) throws(ScenarioError) -> Trigger {
        var trigger = Trigger()
        trigger.fromNanoseconds = try fields.duration("from") ?? 0
        trigger.forNanoseconds = try fields.duration("for")
        trigger.againNanoseconds = try fields.duration("again")
        if let again = trigger.againNanoseconds, again <= trigger.forNanoseconds ?? .max {
            throw ScenarioError(
                message:
                    "'again', the time from one start to the next, must be longer than 'for': "
                    + "make 'again' longer, or set 'for' to a shorter time",
                position: fields.position)
        }
        return trigger
    }

    private static func goAway(_ fields: inout ScenarioFields) throws(ScenarioError) -> GoAway {
        var goAway = GoAway()
        goAway.code = try code(&fields) ?? 0
        let reason = try fields.text("reason")
        let text = try fields.text("text")
        if let reason {
            guard text == nil else {
                throw ScenarioError(
                    message: "'reason' and 'text' exclude each other: write one of them",
                    position: fields.position)
            }
            guard reason.utf8.allSatisfy({ $0 >= 0x20 && $0 != 0x22 && $0 != 0x5c }) else {
                throw ScenarioError(
                    message: "'reason' must not contain quotes, backslashes or control characters",
                    position: fields.position)
            }
            goAway.debug = Array("{\"reason\":\"\(reason)\"}".utf8)
        } else if let text {
            goAway.debug = Array(text.utf8)
        }
        guard goAway.debug.count <= 1024 else {
            throw ScenarioError(
                message: "GOAWAY's data exceeds 1024 bytes: shorten 'reason' or 'text'",
                position: fields.position)
        }
        goAway.noticeNanoseconds = try fields.duration("notice") ?? 0
        goAway.isBeforeRequest = try fields.boolean("before_request") ?? false
        goAway.isAbrupt = try fields.boolean("abrupt") ?? false
        return goAway
    }

    private static func response(_ fields: inout ScenarioFields) throws(ScenarioError) -> Response {
        let name = try fields.required(try fields.text("reason"), "reason")
        guard let reason = Reason.allCases.first(where: { $0.text == name && $0.isFromAPNs }) else {
            throw ScenarioError(
                message:
                    "'\(name)' is not a reason of APNs: write a reason from Apple's list, such as "
                    + "\"ServiceUnavailable\"",
                position: fields.position)
        }
        var response = Response.refused(reason)
        if let status = try fields.integer("status", in: 400...599) {
            response.status = UInt16(status)
        }
        if let seconds = try fields.integer("retry_after", in: 0...86_400) {
            response.retryAfterSeconds = UInt32(seconds)
        }
        return response
    }

    /// The error codes of RFC 9113 section 7 by name.
    private static let codes = [
        "NO_ERROR", "PROTOCOL_ERROR", "INTERNAL_ERROR", "FLOW_CONTROL_ERROR", "SETTINGS_TIMEOUT",
        "STREAM_CLOSED", "FRAME_SIZE_ERROR", "REFUSED_STREAM", "CANCEL", "COMPRESSION_ERROR",
        "CONNECT_ERROR", "ENHANCE_YOUR_CALM", "INADEQUATE_SECURITY", "HTTP_1_1_REQUIRED",
    ]

    private static func code(_ fields: inout ScenarioFields) throws(ScenarioError) -> UInt32? {
        guard let value = fields.value("code") else { return nil }
        switch value.content {
        case .string(let name):
            if let code = codes.firstIndex(of: name) { return UInt32(code) }
        case .number:
            if let code = value.number.flatMap({ UInt32(exactly: $0) }) { return code }
        default: break
        }
        throw ScenarioError(
            message:
                "'code' must be an error code of HTTP/2, such as \"REFUSED_STREAM\", or a number",
            position: value.position)
    }
}
