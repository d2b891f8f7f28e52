import Broadside

/// The options by which a run is watched and steered.
enum WatchOptions {
    static let section = OptionSection(
        title: "While it runs",
        options: [
            .init(
                "progress", "auto|none|json",
                "lines redrawn on a terminal, else one now and then; a JSON line a second (default: auto)"
            ),
            .init(
                "log", "text|json",
                "all events on stderr, a line each (default: text, what matters, with --progress auto)"
            ),
            .init(
                "report", "FILE.html", "write a page about the run: curves, reasons, connections"),
            .init(
                "metrics", "FILE|HOST:PORT",
                "Prometheus text: a file replaced every second, or an endpoint; :PORT is loopback's"
            ),
            .init(
                "trace-frames", "FILE",
                "write each HTTP/2 frame as a line of JSON, secrets masked; at most 256 MiB"),
            .init(
                "control", "PATH",
                "make a socket here, for its owner alone: broadside control PATH talks to it"),
        ])

    static func read(
        _ arguments: ParsedArguments, into options: inout SendOptions
    ) throws(CommandFailure) {
        if let progress = try arguments.choice("progress", SendOptions.Progress.self) {
            options.progress = progress
        }
        options.log = try arguments.choice("log", SendOptions.LogFormat.self)
        options.report = arguments.string("report")
        options.metrics = arguments.string("metrics")
        options.traceFrames = arguments.string("trace-frames")
        options.control = arguments.string("control")
    }
}
