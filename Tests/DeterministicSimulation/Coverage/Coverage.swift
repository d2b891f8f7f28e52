/// Kinds of faults in the simulation, which are counted.
public enum Fault: String, CaseIterable, Sendable {
    // Faults of a request.
    case refused, reset, silent, busy, trouble, credential, expired, tooManyTokens, strange, early
    case badToken, oddStatus, headersOnly, cutBody, refusedAfterHeaders, wrongLength
    // Faults of a connection.
    case goAwayNotice, goAway, goAwayError, goAwayRaised, goAwayAlways, closed, connectionReset
    case silence, stall, halfClose, violation, secondResponse, settings, shortSend, sendBlocked
    // Faults of a connection to a legacy gateway: how the gateway ends it.
    case gatewayError, gatewayShutdown, gatewayNameless, gatewayWordless, gatewayHalf, gatewayJunk
    case gatewayLate, gatewayStays
    // Faults of a process. They count for its open connections.
    case noConnection, noName, silentName, listChanged, shortWrite, writeFails, syncFails, kill,
        powerCut, signal
    case secondSignal, reload, newToken, newRate, ramp, pause, growth, calm, freeze, claimed
    // Faults of several senders that run at the same time.
    case overlap, staleCopy

    /// Whether the fault affects one request, so that there always is a row.
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

    /// Whether the fault can affect a row in this condition. A response to an incomplete request
    /// counts as `early`.
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

    /// Whether the fault can affect a connection in this condition.
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

/// Condition of a row when a fault occurs; `none`: the connection has no row in flight.
public enum RowCondition: String, CaseIterable, Sendable {
    case none, first, again, resumed, inParts
}

/// Condition of a connection when a fault occurs; `none`: no connection is open.
public enum ConnectionCondition: String, CaseIterable, Sendable {
    case none, new, proven, leaving, blocked, outage
}

/// How often each fault occurred in each condition of a row and of a connection.
public struct Coverage: Sendable, Equatable {
    private static let rows = RowCondition.allCases
    private static let connections = ConnectionCondition.allCases
    private static let width = rows.count * connections.count
    private var counts = [Int](repeating: 0, count: Fault.allCases.count * width)

    /// Creates counts of zero.
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

    /// Adds the counts of another simulation.
    public mutating func add(_ other: Coverage) {
        for index in counts.indices { counts[index] += other.counts[index] }
    }

    /// Whether a legacy gateway ended a connection, with or without an error response.
    public var hasGateways: Bool {
        Fault.ofGateways.contains { fault in
            RowCondition.allCases.contains { count(fault, row: $0) > 0 }
        }
    }

    /// The counts as text, for another process to add.
    public var text: String { counts.map(String.init).joined(separator: " ") + "\n" }

    /// Reads `text`; nil if another version wrote it.
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

    /// Table with one line per fault: first the counts for conditions of rows, then those for
    /// conditions of connections. The last line lists what never happened.
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
