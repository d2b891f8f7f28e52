import BroadsideEngine
import BroadsideLedgers
import BroadsideObservability
import BroadsideSupport
internal import Glibc

extension Summary {
    /// Writes the summary: as text if progress is shown, and as JSON if the options name an output.
    ///
    /// - Parameters:
    ///   - signals: Takes signals during the write; nil if another thread takes them.
    ///   - isUrgent: Whether to avoid long waits.
    func write(
        to options: SendOptions, _ signals: SignalWatch?, isUrgent: Bool = false
    ) throws(BroadsideError) {
        if options.progress != .none, !campaign.isEmpty {
            standardError(
                folded(String(text.dropLast()), indent: Self.valueColumn, for: STDERR_FILENO))
        }
        guard let path = options.summary else { return }
        if path == "-" { return try writeToStandardOutput() }
        let bytes = json()
        guard let signals else { return try replaceFile(path, with: bytes) }
        try signals.write(path, isUrgent: isUrgent) { () throws(BroadsideError) in
            try replaceFile(path, with: bytes)
        }
    }
}

extension Summary {
    /// Writes the summary of a run that ended with an error before it counted its rows. Without
    /// this summary, a reader could mistake an earlier run's summary for the summary of this run.
    ///
    /// If another process uses the ledger, nothing is written, because the summary of that process
    /// may have the same name. An error of the write is ignored, because the error that ended the
    /// run is reported.
    ///
    /// - Parameters:
    ///   - isNew: Whether the campaign is known to have no ledger. Otherwise its counts are
    ///     unknown.
    ///   - signals: Takes signals during the write; nil if no thread defers them.
    static func write(
        _ error: BroadsideError, isNew: Bool, to options: SendOptions, _ signals: SignalWatch?
    ) {
        let codes = [
            ExitCode.failure, ExitCode.badRequest, ExitCode.refused, ExitCode.disk,
        ]
        guard let path = options.summary, !options.opensNoConnection,
            codes.contains(error.exitCode)
        else { return }
        var summary = Summary(unbegun: .error)
        summary.name = options.name
        summary.labels = options.labels
        summary.areCountsKnown = isNew
        // The list may have been read, and may have invalid rows.
        summary.areUnsentCountsKnown = false
        summary.take(
            use: ProcessUse.now(), statistics: RunStatistics(), latency: LatencyCounts(),
            elapsed: 0, requests: 0)
        do throws(BroadsideError) {
            if path != "-" { try checkWritable(path, option: "summary") }
            try summary.write(to: options, signals)
        } catch {}
    }
}

extension Summary {
    /// Writes to standard output. A reader that stalls must not prevent the run from ending.
    private func writeToStandardOutput() throws(BroadsideError) {
        let output = OutputQueue.standardOutput
        output.put(String(decoding: json(), as: UTF8.self))
        switch output.finish() {
        case .written, .failed(EPIPE): return
        case .failed(let number):
            throw BroadsideError("standard output: \(describe(errno: number))", exitCode: 5)
        case .stuck:
            BroadsideSupport.standardError(
                "broadside: warning: nothing reads standard output, so the "
                    + "summary is lost: broadside ledger stats shows the counts")
        }
    }
}
