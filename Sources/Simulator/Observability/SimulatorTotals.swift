internal import BroadsideAPNs
internal import BroadsideLegacyGateway

/// What a simulator saw and said, from its start to its end.
public struct SimulatorTotals: Sendable, Equatable {
    /// Connections accepted.
    public var connections: UInt64 = 0
    /// Connections refused because a thread had as many as it takes.
    public var connectionsRefused: UInt64 = 0
    /// Handshakes that failed.
    public var handshakesFailed: UInt64 = 0
    /// Requests that were complete.
    public var requests: UInt64 = 0
    /// Answers accepted, status 200.
    public var accepted: UInt64 = 0
    /// Refusals by status, then by reason.
    public private(set) var refusals: [UInt16: [String: UInt64]] = [:]
    /// Notifications that the legacy gateway took.
    public private(set) var gatewayAccepted: UInt64 = 0
    /// Those that it did not take, by the error packet's status.
    public private(set) var gatewayRefusals: [UInt8: UInt64] = [:]
    /// Streams refused or reset, and connections ended, for exceeding a limit.
    public var violations: UInt64 = 0
    /// What a scenario did, by its names.
    public private(set) var faults: [String: UInt64] = [:]
    /// Header blocks that the lint walked.
    public var lintedBlocks: UInt64 = 0
    /// Deviations from the HPACK discipline by kind, in words.
    public var lintFindings: [String: UInt64] = [:]
    /// What requests had that APNs lets pass and that is still wrong, by kind.
    private(set) var findings: [RequestFinding: UInt64] = [:]
    /// Client certificates that the authority signed and that were refused, by reason.
    private(set) var certificateRefusals: [String: UInt64] = [:]
    /// A write to the journal failed: it is not whole.
    public var journalFailed = false
    /// A write to the file of deliveries failed: it is not whole.
    public var deliveriesFailed = false
    /// What became of notifications for devices; nil where nobody asked.
    var devices: DeviceStore.Counts?

    /// Nothing yet.
    public init() {}

    mutating func count(_ response: Response) {
        requests += 1
        guard response.status != 200 else {
            accepted += 1
            return
        }
        refusals[response.status, default: [:]][response.reason?.text ?? "none", default: 0] += 1
    }

    /// Counts a notification for the legacy gateway; status 0 is accepted.
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

    /// Adds what the lint found on a connection.
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

    /// Lines for a person, without a line end behind the last.
    public func report(lint: HPACKLintMode) -> String {
        var lines = ["\(connections) connections, \(requests) requests"]
        if connectionsRefused > 0 { lines[0] += ", \(connectionsRefused) connections refused" }
        if handshakesFailed > 0 { lines[0] += ", \(handshakesFailed) handshakes failed" }
        if accepted > 0 { lines.append("200: \(accepted)") }
        for (status, reasons) in refusals.sorted(by: { $0.key < $1.key }) {
            for (reason, count) in reasons.sorted(by: { $0.key < $1.key }) {
                lines.append("\(status) \(reason): \(count)")
            }
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
        if deliveriesFailed { lines.append("--deliveries is not whole: a write failed") }
        if journalFailed { lines.append("the journal is not whole: a write failed") }
        return lines.joined(separator: "\n")
    }
}
