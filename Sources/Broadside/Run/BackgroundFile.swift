import BroadsideSupport

/// What a run keeps up to date on a disk that may take any time: another thread writes it, the latest
/// content in place of one that still waits. A failure is said once and ends nothing.
final class BackgroundFile<Content> {
    private let path: String
    /// What a failure means.
    private let consequence: String
    private let worker: BackgroundWorker<Content, BroadsideError?>
    private var hasFailed = false

    /// - Parameters:
    ///   - path: Its name, for who is told of a failure.
    ///   - consequence: What a failure means.
    ///   - write: Called on the other thread, with one content after the other.
    init(
        _ path: String, consequence: String,
        write: @escaping @Sendable (Content) throws(BroadsideError) -> Void
    ) {
        self.path = path
        self.consequence = consequence
        worker = BackgroundWorker { content in
            do throws(BroadsideError) {
                try write(content)
                return nil
            } catch {
                return error
            }
        }
    }

    /// Has a content written; after a failure none.
    func put(_ content: @autoclosure () -> Content) {
        takeResult()
        guard !hasFailed else { return }
        do throws(BroadsideError) {
            try worker.put(content())
        } catch {
            fail(error)
        }
    }

    /// Whether something is still on its way to the disk.
    var isWriting: Bool {
        takeResult()
        return !worker.isIdle
    }

    /// Reports that the end waits no longer for what is still on its way.
    func leave() {
        guard isWriting else { return }
        fail(BroadsideError("\(path) is still being written", exitCode: ExitCode.disk))
    }

    /// Learns how the latest writing went.
    func takeResult() {
        if let failure = worker.take() ?? nil { fail(failure) }
    }

    private func fail(_ error: BroadsideError) {
        defer { hasFailed = true }
        // A ledger in use is the newer attempt's, and the run finds that out without this.
        guard !hasFailed, error.exitCode != ExitCode.inUse else { return }
        standardErrorLine("broadside: warning: \(error.message): \(consequence)")
    }
}
