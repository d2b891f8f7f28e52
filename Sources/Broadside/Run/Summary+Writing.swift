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
