internal import BroadsideAPNs
internal import BroadsideLegacyGateway

/// The counts of a simulator, from its start to its end.
public struct SimulatorTotals: Sendable, Equatable {
    /// Accepted connections.
    public var connections: UInt64 = 0
    /// Connections rejected because a thread had reached its connection limit.
    public var connectionsRefused: UInt64 = 0
    /// Failed handshakes.
    public var handshakesFailed: UInt64 = 0
    /// Complete requests.
    public var requests: UInt64 = 0
    /// Responses with status 200.
    public var accepted: UInt64 = 0
    /// Refusals by status, then by reason.
    public private(set) var refusals: [UInt16: [String: UInt64]] = [:]
    /// The requests about broadcast channels that were performed, by operation.
    public private(set) var channelRequests: [String: UInt64] = [:]
    /// Notifications accepted by the legacy gateway.
    public private(set) var gatewayAccepted: UInt64 = 0
    /// Notifications rejected by the legacy gateway, by the status of the error packet.
    public private(set) var gatewayRefusals: [UInt8: UInt64] = [:]
    /// The streams that were refused or reset, and connections that were ended, because the client
    /// exceeded a limit.
    public var violations: UInt64 = 0
    /// Faults injected by a scenario, by name.
    public private(set) var faults: [String: UInt64] = [:]
    /// Header blocks checked by the lint.
    public var lintedBlocks: UInt64 = 0
    /// Deviations from the HPACK indexing policy, by description.
    public var lintFindings: [String: UInt64] = [:]
    /// Defects of requests that APNs tolerates, by kind.
    private(set) var findings: [RequestFinding: UInt64] = [:]
    /// Client certificates signed by the authority but rejected, by reason.
    private(set) var certificateRefusals: [String: UInt64] = [:]
    /// True if a write to the journal failed and the journal is incomplete.
    public var journalFailed = false
    /// True if a write to the deliveries file failed and the file is incomplete.
    public var deliveriesFailed = false
    /// True if a write to the recording failed and the file is incomplete.
    public var recordingFailed = false
    /// The counts of replayed responses; nil if `--replay` was not given.
    var replay: Replay.Counts?
    /// The counts of the device store; nil if it was not in use.
    var devices: DeviceStore.Counts?

    /// Notifications and broadcasts that were accepted over HTTP/2.
    var acceptedMessages: UInt64 {
        guard !channelRequests.isEmpty else { return accepted }
        let broadcasts = channelRequests[ChannelRequest.Operation.broadcast.rawValue, default: 0]
        return accepted + broadcasts
    }

    /// Creates totals of zero.
    public init() {}

    mutating func count(_ response: Response) {
        requests += 1
        guard response.status != 200 else {
            accepted += 1
            return
        }
        refusals[response.status, default: [:]][response.reason?.text ?? "none", default: 0] += 1
    }

    /// Counts a request about channels.
    ///
    /// - Parameter operation: The requested operation; nil if the header block was refused.
    mutating func countChannel(_ operation: ChannelRequest.Operation?, _ response: Response) {
        guard response.reason == nil, response.status < 300, let operation else {
            return count(response)
        }
        requests += 1
        channelRequests[operation.rawValue, default: 0] += 1
    }

    /// Counts a notification of the legacy gateway; status 0 means accepted.
    mutating func countGateway(status: UInt8) {
        requests += 1
        if status == BinaryStatus.noError.rawValue {
            gatewayAccepted += 1
        } else {
            gatewayRefusals[status, default: 0] += 1
        }
    }

    mutating func count(_ finding: RequestFinding) {
        findings[finding, default: 0] += 1
    }

    mutating func countCertificate(refused reason: Reason) {
        certificateRefusals[reason.text, default: 0] += 1
    }

    mutating func countFault(_ action: Fault.Action) {
        faults[action.name, default: 0] += 1
    }

    /// Adds a connection's lint findings.
    mutating func add(_ lint: HPACKLint) {
        lintedBlocks += lint.blocks
        for (finding, count) in lint.findings {
            lintFindings[finding.description, default: 0] += count
        }
    }

    mutating func add(_ other: SimulatorTotals) {
        connections += other.connections
        connectionsRefused += other.connectionsRefused
        handshakesFailed += other.handshakesFailed
        requests += other.requests
        accepted += other.accepted
        channelRequests.merge(other.channelRequests, uniquingKeysWith: +)
        gatewayAccepted += other.gatewayAccepted
        gatewayRefusals.merge(other.gatewayRefusals, uniquingKeysWith: +)
        violations += other.violations
        lintedBlocks += other.lintedBlocks
        for (status, reasons) in other.refusals {
            for (reason, count) in reasons {
                refusals[status, default: [:]][reason, default: 0] += count
            }
        }
        for (name, count) in other.faults { faults[name, default: 0] += count }
        for (finding, count) in other.lintFindings { lintFindings[finding, default: 0] += count }
        findings.merge(other.findings, uniquingKeysWith: +)
        certificateRefusals.merge(other.certificateRefusals, uniquingKeysWith: +)
        journalFailed = journalFailed || other.journalFailed
        deliveriesFailed = deliveriesFailed || other.deliveriesFailed
    }

    /// Returns a human-readable report. Its last line has no line end.
    public func report(lint: HPACKLintMode) -> String {
        let refused = refusals.values.reduce(0) { $0 + $1.values.reduce(0, +) }
        assert(
            requests == accepted + refused + channelRequests.values.reduce(0, +)
                + gatewayAccepted + gatewayRefusals.values.reduce(0, +),
            "each request has one outcome")
        var lines = ["\(connections) connections, \(requests) requests"]
        if connectionsRefused > 0 { lines[0] += ", \(connectionsRefused) connections refused" }
        if handshakesFailed > 0 { lines[0] += ", \(handshakesFailed) handshakes failed" }
        if accepted > 0 { lines.append("200: \(accepted)") }
        for (status, reasons) in refusals.sorted(by: { $0.key < $1.key }) {
            for (reason, count) in reasons.sorted(by: { $0.key < $1.key }) {
                lines.append("\(status) \(reason): \(count)")
            }
        }
        for (operation, count) in channelRequests.sorted(by: { $0.key < $1.key }) {
            lines.append("channels: \(operation): \(count)")
        }
        if gatewayAccepted > 0 { lines.append("gateway: \(gatewayAccepted) accepted") }
        for (status, count) in gatewayRefusals.sorted(by: { $0.key < $1.key }) {
            let reason = BinaryStatus(rawValue: status)?.reason.text ?? "none"
            lines.append("gateway: \(status) \(reason): \(count)")
        }
        for (reason, count) in certificateRefusals.sorted(by: { $0.key < $1.key }) {
            lines.append("client certificates refused: \(reason): \(count)")
        }
        for finding in RequestFinding.allCases {
            if let count = findings[finding] { lines.append("\(finding.text): \(count) requests") }
        }
        if violations > 0 { lines.append("limits exceeded: \(violations)") }
        for (name, count) in faults.sorted(by: { $0.key < $1.key }) {
            lines.append("scenario: \(name): \(count)")
        }
        if lint != .off {
            if lintFindings.isEmpty {
                lines.append("HPACK: no deviations in \(lintedBlocks) header blocks")
            }
            for (finding, count) in lintFindings.sorted(by: { $0.key < $1.key }) {
                lines.append("HPACK: \(finding): \(count) in \(lintedBlocks) header blocks")
            }
        }
        if let devices {
            lines.append(
                "devices: \(devices.delivered) delivered, \(devices.stored) stored, \(devices.held) held, "
                    + "\(devices.coalesced) coalesced, \(devices.expired) expired, "
                    + "\(devices.discarded) discarded, \(devices.dropped) dropped")
        }
        if let replay {
            lines.append(
                "replay: \(replay.replayed) requests got the next line of their token, "
                    + "\(replay.repeated) its last line again, \(replay.unknown) found no line")
        }
        if recordingFailed { lines.append("--record is incomplete: a write failed") }
        if deliveriesFailed { lines.append("--deliveries is incomplete: a write failed") }
        if journalFailed { lines.append("the journal is incomplete: a write failed") }
        return lines.joined(separator: "\n")
    }
}
