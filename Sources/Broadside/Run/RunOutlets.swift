import Engine
import Ledgers
import Observability
import Support

/// Where a run tells of itself besides stderr and the ledger: opened before anything is sent, so
/// that a wrong setting costs nothing.
struct RunOutlets {
    /// Where the run is talked to: in its ledger, and where `--control` says.
    private(set) var controls: [ControlSocket] = []
    let metrics: MetricsOutlet?
    let trace: FrameTraceFile?

    init(_ options: SendOptions) throws(BroadsideError) {
        if let path = options.control { controls.append(try ControlSocket(path)) }
        trace = try options.traceFrames.map { (path) throws(BroadsideError) in
            try OutputRule.checkPlace(option: "trace-frames", path: path)
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
            controls.append(try ControlSocket(in: ledger))
        } catch {
            standardErrorLine(
                "broadside: warning: broadside control --ledger will not reach this run: "
                    + "\(error.message)")
        }
    }
}
