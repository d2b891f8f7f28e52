import BroadsideSupport
internal import Glibc

/// The progress of a run on stderr: a live view on a terminal, otherwise a plain line every few
/// seconds, or one JSON object per second and one at the end.
package struct Progress {
    private enum Mode {
        case none, plain, json
        case live(LiveView)
    }

    private let mode: Mode
    /// Number of samples until the next plain line.
    private var countdown: Int

    /// Seconds between plain lines.
    private static let plainInterval = 5

    package init(_ progress: ProgressMode) {
        switch progress {
        case .none: mode = .none
        case .json: mode = .json
        case .auto:
            mode =
                isatty(STDERR_FILENO) == 1 && SystemCall.environment("TERM") != "dumb"
                ? .live(LiveView(style: Self.style)) : .plain
        }
        countdown = Self.plainInterval
    }

    /// Capabilities of the terminal, as the environment declares them (no-color.org; POSIX, section
    /// 8.2).
    private static var style: LiveView.Style {
        let locale =
            SystemCall.environment("LC_ALL") ?? SystemCall.environment("LC_CTYPE")
            ?? SystemCall.environment("LANG") ?? ""
        let name = locale.lowercased()
        return LiveView.Style(
            hasColor: SystemCall.environment("NO_COLOR") == nil,
            hasUnicode: name.contains("utf-8") || name.contains("utf8"))
    }

    /// Whether the live view is shown on a terminal.
    package var isLive: Bool {
        if case .live = mode { return true }
        return false
    }

    /// Displays a snapshot; called once per second.
    ///
    /// - Parameter keys: Keys that the run accepts; nil if it reads none.
    package mutating func show(_ snapshot: RunSnapshot, keys: RunKeys?) {
        switch mode {
        case .none:
            break
        case .json:
            standardError(snapshot.json.object)
        case .plain:
            countdown -= 1
            assert(countdown >= 0, "a line is due after so many calls")
            guard countdown == 0 else { return }
            countdown = Self.plainInterval
            standardError(LiveView.plainLine(snapshot))
        case .live:
            redraw(snapshot, keys: keys)
        }
    }

    /// Redraws the live view without waiting for the next snapshot, after a key was pressed.
    package func redraw(_ snapshot: RunSnapshot, keys: RunKeys?) {
        guard case .live(let view) = mode else { return }
        OutputQueue.standardError.show(
            view.lines(snapshot, width: LiveBlock.size().columns, keys: keys))
    }

    /// Prints the final numbers of a run, if programs read its progress.
    package func end(_ snapshot: RunSnapshot) {
        if case .json = mode { standardError(snapshot.json.object) }
    }

    /// Removes the live view, so that other output can follow.
    package func finish() {
        OutputQueue.standardError.show([])
    }
}
