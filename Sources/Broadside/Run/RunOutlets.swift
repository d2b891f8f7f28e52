import Engine
import Ledgers
import Observability
import Support

/// Where a run tells of itself besides stderr and the ledger: opened before anything is sent, so
/// that a wrong setting costs nothing.
struct RunOutlets {
    let control: ControlSocket?
    let metrics: MetricsOutlet?
    let trace: FrameTraceFile?

    init(_ options: SendOptions) throws(BroadsideError) {
        if let path = options.control {
            control = try ControlSocket(path)
        } else {
            control = nil
        }
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
}
