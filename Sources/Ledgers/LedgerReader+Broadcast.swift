import BroadsideLedgerFormat

extension LedgerReader {
    /// Human-readable lines about a broadcast and its channel; nil for any other ledger.
    public var broadcastText: String? {
        let identity = manifest.identity
        guard identity.wireProtocol == CampaignIdentity.broadcastProtocol else { return nil }
        var lines = [
            "broadcast to channel \(identity.channel ?? "") of \(identity.topic ?? "")",
            "  request id  "
                + String(
                    decoding: notificationIDText(
                        campaign: manifest.campaignNumber, part: 0, row: 0), as: UTF8.self),
        ]
        if let uniqueID = manifest.broadcastUniqueID { lines.append("  unique id   \(uniqueID)") }
        lines.append("  payload     SHA-256 \(identity.payloadSHA256)")
        return lines.map { $0 + "\n" }.joined()
    }
}
