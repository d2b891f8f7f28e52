/// What goes wrong in the simulation, for counting.
public enum Fault: String, CaseIterable, Sendable {
    // Of a request.
    case refused, reset, silent, busy, trouble, credential, expired, tooManyTokens, strange, early
    case badToken, oddStatus, headersOnly, cutBody, refusedAfterHeaders, wrongLength
    // Of a connection.
    case goAwayNotice, goAway, goAwayError, goAwayRaised, goAwayAlways, closed, connectionReset
    case silence, stall, halfClose, violation, secondResponse, settings, shortSend, sendBlocked
    // Of a connection to a legacy gateway, by its last word.
    case gatewayError, gatewayShutdown, gatewayNameless, gatewayWordless, gatewayHalf, gatewayJunk
    case gatewayLate, gatewayStays
    // Of a process: its connections are those that stand.
    case noConnection, noName, silentName, listChanged, shortWrite, writeFails, syncFails, kill,
        powerCut, signal
    case secondSignal, reload, newToken, newRate, ramp, pause, growth, calm, freeze, claimed
    // Of several senders at a time.
    case overlap, staleCopy

    /// Whether it befalls one request, so that there always is a row.
    private var isOfRequest: Bool { Fault.ofRequests.contains(self) }

    private static let ofRequests: Set<Fault> = [
        .refused, .reset, .silent, .busy, .trouble, .credential, .expired, .tooManyTokens, .strange,
        .early, .badToken, .oddStatus, .headersOnly, .cutBody, .refusedAfterHeaders, .wrongLength,
    ]

    fileprivate static let ofGateways: Set<Fault> = [
        .gatewayError, .gatewayShutdown, .gatewayNameless, .gatewayWordless, .gatewayHalf,
        .gatewayJunk, .gatewayLate, .gatewayStays,
    ]

    private static let ofProcesses: Set<Fault> = [
        .noConnection, .noName, .silentName, .listChanged, .shortWrite, .writeFails, .syncFails,
        .kill, .powerCut, .signal,
        .secondSignal, .reload, .newToken, .newRate, .pause, .growth, .calm, .freeze,
        .claimed, .overlap, .staleCopy,
    ]

    private var isGoAway: Bool {
        self == .goAwayNotice || self == .goAway || self == .goAwayError || self == .goAwayAlways
    }

    /// Whether it can meet a row like that: a response to what has not come whole is an early one.
    func canMeet(_ row: RowCondition) -> Bool {
        let isGateways = Fault.ofGateways.contains(self)
        return switch row {
        case .none where isGateways: self == .gatewayNameless
        case .inParts where isGateways: false
        case .none: !isOfRequest && self != .goAwayAlways
        case .inParts: !isOfRequest || self == .refused || self == .early
        default: true
        }
    }

    /// Whether it can meet a connection like that.
    func canMeet(_ connection: ConnectionCondition) -> Bool {
        switch (self, connection) {
        case (.noConnection, .none): false
        case (_, .none): Fault.ofProcesses.contains(self)
        case (_, .leaving), (_, .outage):
            !Fault.ofGateways.contains(self) && !(connection == .leaving && isGoAway)
        case (.goAwayRaised, .new), (.goAwayRaised, .proven), (.goAwayRaised, .blocked): false
        case (.sendBlocked, .new), (.sendBlocked, .proven), (.shortSend, .blocked): false
        default: true
        }
    }
}

/// What a row is like when something befalls it; `none`: no row is in flight there.
public enum RowCondition: String, CaseIterable, Sendable {
    case none, first, again, resumed, inParts
}

/// What a connection is like when something befalls it; `none`: none stands.
public enum ConnectionCondition: String, CaseIterable, Sendable {
    case none, new, proven, leaving, blocked, outage
}

/// How often each fault met each condition of a row and of a connection.
public struct Coverage: Sendable, Equatable {
    private static let rows = RowCondition.allCases
    private static let connections = ConnectionCondition.allCases
    private static let width = rows.count * connections.count
    private var counts = [Int](repeating: 0, count: Fault.allCases.count * width)

    /// Nothing happened.
    public init() {}

    mutating func note(_ fault: Fault, _ row: RowCondition, _ connection: ConnectionCondition) {
        let place =
            Self.index(fault, Fault.allCases) * Self.width
            + Self.index(row, Self.rows) * Self.connections.count
            + Self.index(connection, Self.connections)
        counts[place] += 1
    }

    private static func index<Value: Equatable>(_ value: Value, _ all: [Value]) -> Int {
        all.firstIndex(of: value)!
    }

    /// Adds what happened elsewhere.
    public mutating func add(_ other: Coverage) {
        for index in counts.indices { counts[index] += other.counts[index] }
    }

    /// Whether a legacy gateway said its last word, or ended a connection without one.
    public var hasGateways: Bool {
        Fault.ofGateways.contains { fault in
            RowCondition.allCases.contains { count(fault, row: $0) > 0 }
        }
    }

    /// The counts as text, for another process to add.
    public var text: String { counts.map(String.init).joined(separator: " ") + "\n" }

    /// Reads `text`; nil where it is that of another version.
    public init?(text: String) {
        let numbers = text.split(whereSeparator: \.isWhitespace).compactMap { Int($0) }
        guard numbers.count == counts.count else { return nil }
        counts = numbers
    }

    private func count(_ fault: Fault, row: RowCondition) -> Int {
        let start = Self.index(fault, Fault.allCases) * Self.width
        let first = start + Self.index(row, Self.rows) * Self.connections.count
        return counts[first..<(first + Self.connections.count)].reduce(0, +)
    }

    private func count(_ fault: Fault, connection: ConnectionCondition) -> Int {
        let start = Self.index(fault, Fault.allCases) * Self.width
        let offset = Self.index(connection, Self.connections)
        return Self.rows.indices.reduce(0) {
            $0 + counts[start + $1 * Self.connections.count + offset]
        }
    }

    /// A line for each fault, the conditions of rows first, then those of connections; what never
    /// happened comes last.
    public func table(least: Int = 1) -> String {
        func padded(_ text: String) -> String {
            String(repeating: " ", count: max(1, 9 - text.count)) + text
        }
        let names = Self.rows.map(\.rawValue) + Self.connections.map(\.rawValue)
        var lines = [
            String(repeating: " ", count: 20) + "row"
                + String(repeating: " ", count: 9 * Self.rows.count - 3) + "connection",
            String(repeating: " ", count: 19) + names.map(padded).joined(),
        ]
        var missing: [String] = []
        for fault in Fault.allCases {
            var line = fault.rawValue.padding(to: 19)
            for row in Self.rows {
                let isPossible = fault.canMeet(row)
                let number = count(fault, row: row)
                line += padded(isPossible ? String(number) : "-")
                if isPossible, number < least { missing.append("\(fault)/row \(row)") }
            }
            for connection in Self.connections {
                let isPossible = fault.canMeet(connection)
                let number = count(fault, connection: connection)
                line += padded(isPossible ? String(number) : "-")
                if isPossible, number < least {
                    missing.append("\(fault)/connection \(connection)")
                }
            }
            lines.append(line)
        }
        let words = least == 1 ? "never happened" : "happened less than \(least) times"
        lines.append("\(words): \(missing.isEmpty ? "nothing" : missing.joined(separator: ", "))")
        return lines.joined(separator: "\n")
    }
}

extension String {
    fileprivate func padding(to count: Int) -> String {
        self + String(repeating: " ", count: max(0, count - self.count))
    }
}
