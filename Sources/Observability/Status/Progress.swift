import BroadsideSupport
internal import Glibc

/// Says on stderr how a run goes on: lines redrawn in place on a terminal, a plain line every few
/// seconds elsewhere, or a JSON object a second.
package struct Progress {
    private enum Mode {
        case none, plain, json
        case live(LiveView)
    }

    private let mode: Mode
    /// Looks until the next line.
    private var countdown: Int

    /// Seconds between two plain lines.
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

    /// What people asked their terminal to show (no-color.org; POSIX, section 8.2).
    private static var style: LiveView.Style {
        let locale =
            SystemCall.environment("LC_ALL") ?? SystemCall.environment("LC_CTYPE")
            ?? SystemCall.environment("LANG") ?? ""
        let name = locale.lowercased()
        return LiveView.Style(
            hasColor: SystemCall.environment("NO_COLOR") == nil,
            hasUnicode: name.contains("utf-8") || name.contains("utf8"))
    }

    /// Whether a person at a terminal watches lines that are redrawn in place.
    package var isLive: Bool {
        if case .live = mode { return true }
        return false
    }

    /// Shows a look; called once a second.
    ///
    /// - Parameter keys: What the run does at a key; nil if it reads none.
    package mutating func show(_ snapshot: RunSnapshot, keys: RunKeys?) {
        switch mode {
        case .none:
            break
        case .json:
            standardError(snapshot.json.object)
        case .plain:
            countdown -= 1
            guard countdown == 0 else { return }
            countdown = Self.plainInterval
            standardError(LiveView.plainLine(snapshot))
        case .live:
            redraw(snapshot, keys: keys)
        }
    }

    /// Draws the live view again, at once where a key changed something.
    package func redraw(_ snapshot: RunSnapshot, keys: RunKeys?) {
        guard case .live(let view) = mode else { return }
        OutputQueue.standardError.show(
            view.lines(snapshot, width: LiveBlock.size().columns, keys: keys))
    }

    /// Leaves the terminal as other output expects it.
    package func finish() {
        OutputQueue.standardError.show([])
    }
}
