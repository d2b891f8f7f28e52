import BroadsideSupport

/// A file that another thread keeps up to date, because its disk may be slow. New content replaces
/// content that still waits to be written. A failure does not end the run: it is reported, and the
/// next content is tried again. Further failures are reported only after a success.
final class BackgroundFile<Content> {
    private let path: String
    /// Consequence of a failure, for the warning.
    private let consequence: String
    private let worker: BackgroundWorker<Content, BroadsideError?>
    /// Whether the latest write failed.
    private var hasFailed = false

    /// - Parameters:
    ///   - path: Name for the warning about a failure.
    ///   - consequence: Consequence of a failure, for the warning.
    ///   - write: Called on the other thread with one content at a time.
    init(
        _ path: String, consequence: String,
        write: @escaping @Sendable (Content) throws(BroadsideError) -> Void
    ) {
        self.path = path
        self.consequence = consequence
        worker = BackgroundWorker(wakes: true) { content in
            do throws(BroadsideError) {
                try write(content)
                return nil
            } catch {
                return error
            }
        }
    }

    /// Schedules a write of the content.
    func put(_ content: Content) {
        takeResult()
        do throws(BroadsideError) {
            try worker.put(content)
        } catch {
            fail(error)
        }
    }

    /// Whether a write is in progress.
    var isWriting: Bool {
        takeResult()
        return !worker.isIdle
    }

    /// Gives up waiting for an unfinished write and warns about it.
    func leave() {
        guard isWriting else { return }
        fail(BroadsideError("\(path) is still being written", exitCode: ExitCode.disk))
    }

    /// Collects the result of the latest write.
    func takeResult() {
        guard let result = worker.take() else { return }
        if let failure = result { fail(failure) } else { hasFailed = false }
    }

    private func fail(_ error: BroadsideError) {
        defer { hasFailed = true }
        // Exit code `inUse` means that a newer attempt has claimed the ledger. The run detects that
        // in another way.
        guard !hasFailed, error.exitCode != ExitCode.inUse else { return }
        standardErrorLine("broadside: warning: \(error.message): \(consequence)")
    }
}
