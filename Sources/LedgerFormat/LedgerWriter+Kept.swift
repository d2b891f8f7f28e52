public import BroadsideRows
import BroadsideSupport

extension LedgerWriter {
    /// Records verdicts again, with their times, for rows that a reservation of this run reopens but
    /// the run does not send. Without this, the rows would be in doubt.
    ///
    /// - Parameter verdicts: Verdicts of rows in one reservation.
    public mutating func keep(_ verdicts: [KeptVerdict]) {
        // These topics have other numbers than the same topics of rows that are sent. In a block,
        // each topic has one number, so the verdicts get blocks of their own.
        let haveTopics = verdicts.contains { !$0.topic.isEmpty }
        if haveTopics { sealBlock() }
        for verdict in verdicts { keep(verdict) }
        if haveTopics { sealBlock() }
    }

    private mutating func keep(_ verdict: KeptVerdict) {
        let topic = number(ofKept: verdict.topic)
        switch verdict.token {
        case .digits(let token):
            keep(verdict, token: token.rawSpan, tokenIsText: false, topic: topic)
        case .text(let text):
            keep(verdict, token: text.rawSpan, tokenIsText: true, topic: topic)
        case .erased(let hash):
            let record = SettledRecord(
                row: verdict.row, state: verdict.state, status: verdict.status,
                reason: verdict.reason, attempts: verdict.attempts,
                milliseconds: verdict.milliseconds, timestamp: verdict.timestamp, token: .none,
                reasonText: 0..<0, arm: verdict.arm)
            settled(
                record, erasedHash: hash.rawSpan, reasonText: verdict.reasonText.rawSpan,
                topic: topic, nowMilliseconds: verdict.milliseconds)
        }
    }

    private mutating func keep(
        _ verdict: KeptVerdict, token: RawSpan, tokenIsText: Bool, topic: UInt16
    ) {
        settled(
            row: verdict.row, state: verdict.state, status: verdict.status, reason: verdict.reason,
            reasonText: verdict.reasonText.rawSpan, attempts: Int(verdict.attempts),
            timestamp: verdict.timestamp, token: token, tokenIsText: tokenIsText,
            arm: verdict.arm, topic: topic, nowMilliseconds: verdict.milliseconds)
    }
}
