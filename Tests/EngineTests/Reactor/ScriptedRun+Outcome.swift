import BroadsideAPNs
import BroadsideLedgerFormat
import BroadsidePolicy

@testable import BroadsideEngine
@testable import BroadsideObservability

/// What came of a scripted run.
extension ScriptedRun {
    /// What the ledger says of each row that it has.
    func rows() throws -> [Row] {
        let index = try LedgerIndex(
            segments: reactors.enumerated().map {
                LedgerSegment(
                    epoch: 1, reactor: UInt16($0.offset), bytes: LedgerMemory($0.element.segment))
            }, campaign: Self.campaign, recordedLengths: [:])
        var rows: [Row] = []
        var verdicts = ChunkVerdicts(of: index)
        for chunk in 0..<index.chunkCount {
            try verdicts.load(chunk: chunk)
            for place in verdicts.rows.indices {
                let verdict = verdicts.rows[place]
                let text = verdicts.reasonText(ofRow: place).map {
                    String(decoding: $0, as: UTF8.self)
                }
                rows.append(
                    Row(
                        state: verdict.state, status: Int(verdict.status),
                        reason: text ?? Reason(rawValue: verdict.reason)?.text,
                        attempts: Int(verdict.attempts)))
            }
        }
        return rows
    }
}

extension ScriptedRun {
    /// What a run says at its end: what happened, and what to do about it.
    func lastLine(_ cause: StopCause) -> String {
        let advice = StopAdvice(
            cause,
            .init(
                wasAnswered: coordinator.lastResponse != nil, hasEndpoint: false,
                environment: "production", isBinary: false, ledger: "tonight"))
        return cause.message + ": " + (advice.lastLine ?? "")
    }
}
