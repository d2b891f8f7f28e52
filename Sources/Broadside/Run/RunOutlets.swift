import BroadsideEngine
import BroadsideLedgers
import BroadsideObservability
import BroadsideSupport

/// Where a run tells of itself besides stderr and the ledger: opened before anything is sent, so
/// that a wrong setting costs nothing.
struct RunOutlets {
    /// Where the run is talked to: in its ledger, and where `--control` says.
    private(set) var controls: [UnixLineServer] = []
    let metrics: MetricsOutlet?
    let trace: FrameTraceFile?

    init(_ options: SendOptions) throws(BroadsideError) {
        if let path = options.control { controls.append(try Self.server(path)) }
        trace = try options.traceFrames.map { (path) throws(BroadsideError) in
            try OutputRule.checkDestination(option: "trace-frames", path: path)
            return try FrameTraceFile(path)
        }
        metrics = try options.metrics.map { (value) throws(BroadsideError) in
            try MetricsOutlet(value)
        }
        if case .endpoint(let endpoint) = metrics {
            standardErrorLine("broadside: metrics at \(endpoint.url)")
        }
    }

    /// Makes the control socket in the ledger's directory. A file system that takes no sockets does not
    /// keep a campaign from being sent.
    mutating func listen(in ledger: LedgerDirectory) {
        do throws(BroadsideError) {
            let path = try ledger.controlPath(limit: unixPathLimit)
            controls.append(try Self.server(path, in: ledger))
        } catch {
            standardErrorLine(
                "broadside: warning: broadside control --ledger will not reach this run: "
                    + "\(error.message)")
        }
    }

    /// What a client of a run may ask: the main thread looks a few times a second, and waits for nobody.
    private static let controlLimits = UnixLineServer.Limits(lineBytes: 1024, requestsAtOnce: 16)

    private static func server(
        _ path: String, in ledger: LedgerDirectory? = nil
    ) throws(BroadsideError) -> UnixLineServer {
        try UnixLineServer(path, option: "control", limits: controlLimits, keeping: ledger)
    }
}
