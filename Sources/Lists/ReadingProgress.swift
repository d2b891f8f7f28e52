import BroadsideSupport
internal import Glibc

/// The display of a list's reading progress on a terminal.
package struct ReadingProgress {
    private let list: TokenList
    private let isShown = isatty(STDERR_FILENO) == 1
    private var nextTime: UInt64 = 0
    private var isDrawn = false

    package init(_ list: TokenList) { self.list = list }

    package mutating func update(_ done: UInt64) {
        guard isShown else { return }
        let now = Clock.now().nanoseconds
        guard now >= nextTime else { return }
        // The first line appears late, because most lists are read by then.
        if nextTime > 0 {
            let (read, total) = list.bytes.progress(at: done)
            writeProgress(
                total == 0
                    ? "\rread \(read >> 20) MiB\u{1b}[K"
                    : "\rread \(min(100, read * 100 / total))% of \(total >> 20) MiB\u{1b}[K")
            isDrawn = true
        }
        nextTime = now + second / 4
    }

    package func end() {
        if isDrawn { writeProgress("\r\u{1b}[K") }
    }

    private func writeProgress(_ text: String) {
        _ = try? writeAll(Array(text.utf8), to: STDERR_FILENO, name: "standard error")
    }
}
