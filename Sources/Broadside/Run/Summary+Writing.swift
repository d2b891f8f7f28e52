import BroadsideObservability
import BroadsideSupport
internal import Glibc

extension Summary {
    /// Writes the text for people where they watch, and the JSON where the options say.
    ///
    /// - Parameters:
    ///   - signals: Who takes signals meanwhile; nil: another thread does.
    ///   - isUrgent: Whether nobody waits for long any more.
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
    /// A reader that takes nothing must not keep the run from ending.
    private func writeToStandardOutput() throws(BroadsideError) {
        let output = OutputQueue.standardOutput
        output.put(String(decoding: json(), as: UTF8.self))
        switch output.finish() {
        case .written, .failed(EPIPE): return
        case .failed(let number):
            throw BroadsideError("standard output: \(describe(errno: number))", exitCode: 5)
        case .stuck:
            BroadsideSupport.standardError(
                "broadside: warning: nothing reads standard output: the summary is lost there; "
                    + "broadside ledger stats shows the counts")
        }
    }
}
