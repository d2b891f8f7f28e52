import BroadsideCampaigns
import BroadsideSupport

/// Options for watching and controlling a run.
enum WatchOptions {
    static let group = OptionGroup<SendOptions>(
        title: "While it runs",
        options: [
            .choice(
                "progress", \.progress,
                "auto: a live view on a terminal, with keys (? lists them), else a line now and then; json: one JSON line per second"
            ),
            .choice(
                "log", \.log,
                "all events on stderr, one per line; of the events on connections that are not warnings, at most 20 per second, and a line counts the others (default: only important events, as text, with --progress auto)"
            ),
            .file(
                "report", \.report, use: .written, placeholder: "FILE.html",
                "write a page about the run: curves, reasons, connections"),
            .custom(
                "metrics", .fileOrEndpoint, "FILE|HOST:PORT",
                "Prometheus metrics: a file that is replaced every second and that all users may read, or an HTTP endpoint; :PORT listens on loopback"
            ) { (text, options) throws(BroadsideError) in options.metrics = text },
            .file(
                "trace-frames", \.traceFrames, use: .written,
                "write each HTTP/2 frame as a line of JSON, with secrets masked; at most 256 MiB"),
            .file(
                "control", \.control, use: .socket, placeholder: "PATH",
                "open a second control socket here, besides the ledger's: broadside control PATH connects to it"
            ),
            .custom(
                "hook", .text, "COMMAND",
                "shell command that runs when the run starts, at each wave, and when the run has stopped or finished; gets the event as JSON on standard input; is killed after 30 s; sending does not wait for it"
            ) { (text, options) throws(BroadsideError) in
                try SendOptions.checkSecretCommand(text, option: "hook")
                options.hook = text
            },
        ])
}
