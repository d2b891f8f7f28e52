internal import Glibc

/// Says on stderr how a run goes on: a line redrawn in place on a terminal, a plain line every few
/// seconds elsewhere, or a JSON object a second.
struct ProgressLine {
    private enum Style {
        case none, live, plain, json
    }

    private let style: Style
    private let start: UInt64
    private var nextLine: UInt64
    private var lastSettled: UInt64 = 0
    private var lastTime: UInt64

    init(_ progress: SendOptions.Progress, now: UInt64) {
        switch progress {
        case .none: style = .none
        case .json: style = .json
        case .auto: style = isatty(STDERR_FILENO) == 1 ? .live : .plain
        }
        start = now
        lastTime = now
        nextLine = now + (style == .live ? second / 4 : style == .json ? second : 5 * second)
    }

    private var interval: UInt64 {
        switch style {
        case .live: second / 4
        case .json: second
        case .plain, .none: 5 * second
        }
    }

    /// Prints a line where one is due.
    mutating func update(_ statistics: RunStatistics, rows: UInt64?, now: UInt64) {
        guard style != .none, now >= nextLine else { return }
        nextLine = now + interval
        let elapsed = Double(now - lastTime) / 1e9
        let settled = statistics.settled
        let rate = elapsed > 0 ? Double(settled - min(settled, lastSettled)) / elapsed : 0
        lastSettled = settled
        lastTime = now
        let seconds = Double(now - start) / 1e9
        switch style {
        case .json:
            standardError(
                "{\"elapsed_seconds\":\(decimal(seconds, places: 1)),\"settled\":\(settled),"
                    + "\"accepted\":\(statistics.accepted),\"rejected\":\(statistics.rejected),"
                    + "\"in_flight\":\(statistics.inFlight),\"rate\":\(Int(rate)),"
                    + "\"connections\":\(statistics.openConnections)}")
        case .live, .plain:
            var line = "\(settled)"
            if let rows, rows > 0 {
                line += " of \(rows) (\(settled * 100 / rows) %)"
            }
            line += ", \(Int(rate))/s, \(statistics.accepted) accepted"
            if statistics.rejected > 0 { line += ", \(statistics.rejected) rejected" }
            if statistics.failed + statistics.unknown > 0 {
                line += ", \(statistics.failed + statistics.unknown) failed or unknown"
            }
            line +=
                ", \(statistics.inFlight) in flight on \(statistics.openConnections) connections"
            if style == .live {
                write("\r\u{1b}[K" + line)
            } else {
                standardError(line)
            }
        case .none:
            break
        }
    }

    /// Leaves the terminal as other output expects it.
    func finish() {
        if style == .live { write("\r\u{1b}[K") }
    }

    private func write(_ text: String) {
        var text = text
        text.withUTF8 { bytes in
            _ = unsafe Glibc.write(STDERR_FILENO, bytes.baseAddress, bytes.count)
        }
    }
}

/// One line on stderr.
public func standardError(_ line: String) {
    var line = line + "\n"
    line.withUTF8 { bytes in
        _ = unsafe write(STDERR_FILENO, bytes.baseAddress, bytes.count)
    }
}
