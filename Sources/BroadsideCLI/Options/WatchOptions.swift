import Broadside
import Support

/// The options by which a run is watched and steered.
enum WatchOptions {
    static let group = OptionGroup<SendOptions>(
        title: "While it runs",
        options: [
            .choice(
                "progress", \.progress,
                "lines redrawn on a terminal, else one now and then; a JSON line per second"),
            .choice(
                "log", \.log,
                "all events on stderr, a line each (default: text, what matters, with --progress auto)"
            ),
            .file(
                "report", \.report, use: .written, placeholder: "FILE.html",
                "write a page about the run: curves, reasons, connections"),
            .custom(
                "metrics", .fileOrEndpoint, "FILE|HOST:PORT",
                "Prometheus text: a file replaced every second, or an endpoint; :PORT is loopback's"
            ) { (text, options) throws(BroadsideError) in options.metrics = text },
            .file(
                "trace-frames", \.traceFrames, use: .written,
                "write each HTTP/2 frame as a line of JSON, secrets masked; at most 256 MiB"),
            .file(
                "control", \.control, use: .socket, placeholder: "PATH",
                "a second control socket here, besides the ledger's own: broadside control PATH talks to it"
            ),
        ])
}
