import BroadsideEngine
import BroadsideLedgers
import BroadsideObservability
import BroadsideSupport

/// The outputs of a run besides stderr and the ledger. They are opened before anything is sent, so
/// that a wrong setting costs nothing.
struct RunOutlets {
    /// The control sockets: in the ledger, and at the path of `--control`.
    private(set) var controls: [UnixLineServer] = []
    let metrics: MetricsOutlet?
    let trace: FrameTraceFile?

    /// Checks that the outputs can be opened and written. A dry run opens and writes none of them.
    static func check(_ options: SendOptions) throws(BroadsideError) {
        for (option, path) in [
            ("report", options.report), ("control", options.control),
            ("trace-frames", options.traceFrames), ("metrics", options.metrics),
        ] where path == "-" {
            throw .usage(option, "-: standard output is not supported: name a file")
        }
        let isDryRun = options.isDryRun
        if let path = options.summary, path != "-" {
            try checkWritable(path, option: "summary", isDryRun: isDryRun)
        }
        if let path = options.report {
            try checkWritable(path, option: "report", isDryRun: isDryRun)
        }
        if let path = options.control { try UnixLineServer.check(path, option: "control") }
        if let path = options.traceFrames {
            try OutputRule.checkDestination(option: "trace-frames", path: path)
            try FrameTraceFile.check(path)
        }
        if let value = options.metrics { try MetricsOutlet.check(value, isDryRun: isDryRun) }
    }

    /// Opens the outputs, which were checked.
    init(_ options: SendOptions) throws(BroadsideError) {
        if let path = options.control { controls.append(try Self.server(path)) }
        trace = try options.traceFrames.map { (path) throws(BroadsideError) in
            try FrameTraceFile(path)
        }
        metrics = try options.metrics.map { (value) throws(BroadsideError) in
            try MetricsOutlet(value)
        }
        if case .endpoint(let endpoint) = metrics {
            standardErrorLine("broadside: metrics at \(endpoint.url)")
        }
    }

    /// Creates the control socket in the ledger's directory. A file system without sockets does not
    /// prevent the campaign from being sent.
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

    /// The limits on the requests of a client. The main thread serves clients several times per
    /// second and never waits.
    private static let controlLimits = UnixLineServer.Limits(lineBytes: 1024, requestsAtOnce: 16)

    private static func server(
        _ path: String, in ledger: LedgerDirectory? = nil
    ) throws(BroadsideError) -> UnixLineServer {
        try UnixLineServer(path, option: "control", limits: controlLimits, keeping: ledger)
    }
}
