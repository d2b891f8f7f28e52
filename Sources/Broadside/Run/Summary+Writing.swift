internal import Glibc
import Observability
import Support

extension Summary {
    /// Writes the JSON where the options say, and the text for people where they watch.
    func write(to options: SendOptions) throws(BroadsideError) {
        if let path = options.summary {
            if path == "-" {
                try writeToStandardOutput()
            } else {
                try replaceFile(path, with: json())
            }
        }
        if options.progress != .none, !campaign.isEmpty {
            standardError(
                folded(String(text.dropLast()), indent: Self.valueColumn, for: STDERR_FILENO))
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
            Support.standardError(
                "broadside: warning: nothing reads standard output: the summary is lost there; "
                    + "broadside ledger stats shows the counts")
        }
    }
}
