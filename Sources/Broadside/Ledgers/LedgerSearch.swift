import APNs
import Campaign

/// Looks rows up in a ledger, by number or by token.
struct LedgerSearch {
    let row: UInt64?
    let token: [UInt8]?

    /// The rows found, a line each.
    func run(_ index: LedgerIndex, _ manifest: Manifest) throws(LedgerError) -> [String] {
        var verdicts = ChunkVerdicts(of: index)
        var found: [String] = []
        let fingerprint = token.map { unsafe TokenText.fingerprint($0.span.bytes) }
        var chunks = 0..<index.chunkCount
        if let row {
            guard let chunk = index.chunkIndex(ofRow: row) else { return [] }
            chunks = chunk..<(chunk + 1)
        }
        for chunk in chunks {
            try verdicts.load(chunk: chunk)
            for place in verdicts.rows.indices {
                let number = verdicts.firstRow + UInt64(place)
                if let row, row != number { continue }
                if let fingerprint, let token,
                    !isToken(verdicts, place, fingerprint: fingerprint, digits: token)
                {
                    continue
                }
                found.append(describe(verdicts, place, number, manifest))
            }
        }
        return found
    }

    private func isToken(
        _ verdicts: borrowing ChunkVerdicts, _ place: Int, fingerprint: UInt64, digits: [UInt8]
    ) -> Bool {
        switch verdicts.rows[place].token {
        case .none: return false
        case .fingerprint(let other): return other == fingerprint
        case .octets, .text:
            var text: [UInt8] = []
            verdicts.appendToken(ofRow: place, to: &text)
            return text == digits
        }
    }

    private func describe(
        _ verdicts: borrowing ChunkVerdicts, _ place: Int, _ number: UInt64, _ manifest: Manifest
    ) -> String {
        let verdict = verdicts.rows[place]
        var text = "row \(number) \(verdict.state.name)"
        let isSilence = verdict.state == .accepted && manifest.identity.acceptsBySilence
        if verdict.status != 0, !isSilence { text += " status \(verdict.status)" }
        if let words = verdicts.reasonText(ofRow: place) {
            text += " \(String(decoding: words, as: UTF8.self))"
        } else if verdict.reason != 0 {
            text += " \(Reason(rawValue: verdict.reason)?.text ?? "reason \(verdict.reason)")"
        }
        text += ", attempts \(verdict.attempts)"
        if manifest.identity.wireProtocol == nil {
            let identifier = notificationIDText(campaign: manifest.campaignNumber, row: number)
            text += ", apns-id \(String(decoding: identifier, as: UTF8.self))"
        }
        if verdict.settledAtMilliseconds > 0 {
            text += ", settled at \(verdict.settledAtMilliseconds)"
        }
        return text
    }
}
