internal import BroadsideSupport

/// A command for a running simulator: its name, and its arguments by name.
struct ControlRequest: Sendable {
    var command: ControlCommand
    var arguments: [String: String] = [:]

    /// Creates a request from words, such as those of a line or a path, and from named arguments. A
    /// word such as `times=2` counts as a named argument.
    init(
        words: [String], named: [(name: String, value: String)] = []
    ) throws(ControlProblem) {
        guard let name = words.first, let command = ControlCommand(rawValue: name) else {
            throw ControlProblem(
                .unknown,
                "unknown command: write one of "
                    + ControlCommand.allCases.map(\.usage).joined(separator: ", "))
        }
        self.command = command
        var positional: [String] = []
        for word in words.dropFirst() {
            if let equals = word.firstIndex(of: "="),
                command.takes(String(word[..<equals]))
            {
                try add(
                    String(word[..<equals]), String(word[word.index(after: equals)...]))
            } else {
                positional.append(word)
            }
        }
        guard positional.count <= command.positional.count else {
            throw ControlProblem(
                .invalid,
                "'\(ForeignText.escaped(positional.last ?? ""))' is one argument too many: write "
                    + command.usage)
        }
        for (name, value) in zip(command.positional, positional) { try add(name, value) }
        for (name, value) in named { try add(name, value) }
        let missing = command.positional.prefix(command.required).filter { arguments[$0] == nil }
        guard missing.isEmpty else {
            throw ControlProblem(
                .invalid,
                "\(name) needs \(missing.joined(separator: " and ")): write "
                    + command.usage)
        }
    }

    private mutating func add(_ name: String, _ value: String) throws(ControlProblem) {
        guard command.takes(name) else {
            throw ControlProblem(
                .invalid, "'\(ForeignText.escaped(name))' is unknown: write \(command.usage)")
        }
        guard arguments[name] == nil else {
            throw ControlProblem(.invalid, "\(name) is given twice: write it once")
        }
        arguments[name] = value
    }

    /// Returns the number in an argument, or a default if the argument is absent.
    func number(
        _ name: String, in range: ClosedRange<UInt64>, default standard: UInt64
    ) throws(ControlProblem) -> UInt64 {
        guard let text = arguments[name] else { return standard }
        guard let value = UInt64(text), range.contains(value) else {
            throw ControlProblem(
                .invalid,
                "\(name) '\(ForeignText.escaped(text))' is not a number from \(range.lowerBound) to "
                    + "\(range.upperBound)")
        }
        return value
    }
}

/// The commands for a running simulator, over the socket and over HTTP.
enum ControlCommand: String, CaseIterable, Sendable {
    case status, received, wait, reset, outcome, scenario, online, offline, awake, drop
    case expireToken = "expire-token"
    case savingPower = "saving-power"
    case subscribe, unsubscribe

    /// Arguments that can be given without their names, in order.
    var positional: [String] {
        switch self {
        case .status, .received, .reset, .expireToken: []
        case .wait: ["count"]
        case .outcome: ["token", "reason"]
        case .scenario: ["name"]
        case .online, .offline, .awake, .savingPower: ["token"]
        case .drop: ["manner"]
        case .subscribe, .unsubscribe: ["channel", "token"]
        }
    }

    /// Number of arguments in `positional` that are mandatory.
    var required: Int { self == .drop ? 0 : positional.count }

    /// The names of the arguments that are not in `positional`, apart from names of header fields.
    private var further: [String] {
        switch self {
        case .received: ["token", "topic", "status", "reason", "after", "limit"]
        case .wait: ["token", "topic", "status", "reason", "after", "timeout"]
        case .outcome: ["times", "retry-after", "timestamp"]
        default: []
        }
    }

    /// Returns whether the command has an argument with this name.
    func takes(_ name: String) -> Bool {
        positional.contains(name) || further.contains(name)
            || (self == .received || self == .wait) && name.hasPrefix("apns-")
    }

    /// Whether the command only reads, and changes nothing.
    var isReading: Bool { self == .status || self == .received || self == .wait }

    /// Human-readable form of the command with its arguments.
    var usage: String {
        let positional = positional.enumerated().map { index, name in
            index < required ? name.uppercased() : "[\(name.uppercased())]"
        }
        let further = further.map { "[\($0)=\($0.uppercased())]" }
        return ([rawValue] + positional + further).joined(separator: " ")
    }
}

/// Reason why a command could not be executed, with advice.
struct ControlProblem: Error {
    enum Kind {
        /// An argument is wrong.
        case invalid
        /// There is no such command.
        case unknown
        /// A limit was reached.
        case full
        /// A `wait` ended before its condition was true.
        case late
    }

    var kind: Kind
    var message: String

    init(_ kind: Kind, _ message: String) {
        self.kind = kind
        self.message = message
    }
}
