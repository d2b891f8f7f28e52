import BroadsideLedgerFormat

/// Data that identifies a broadcast, according to its ledger.
package struct BroadcastRecord: Sendable {
    package let app: String
    package let channel: String
    package let requestID: String
    /// Value of apns-unique-id in the response; nil if it had none.
    package let uniqueID: String?
    package let payloadSHA256: String

    /// Human-readable lines.
    fileprivate var text: String {
        var lines = ["broadcast to channel \(channel) of \(app)", "  request id  \(requestID)"]
        if let uniqueID { lines.append("  unique id   \(uniqueID)") }
        lines.append("  payload     SHA-256 \(payloadSHA256)")
        return lines.map { $0 + "\n" }.joined()
    }
}

extension LedgerReader {
    /// The broadcast; nil if the ledger is not that of a broadcast.
    package var broadcast: BroadcastRecord? {
        let identity = manifest.identity
        guard identity.isBroadcast else { return nil }
        let requestID = notificationIDText(campaign: manifest.campaignNumber, part: 0, row: 0)
        return BroadcastRecord(
            app: identity.topic ?? "", channel: identity.channel ?? "",
            requestID: String(decoding: requestID, as: UTF8.self),
            uniqueID: manifest.broadcastUniqueID, payloadSHA256: identity.payloadSHA256)
    }

    /// Human-readable lines about a broadcast and its channel; nil for any other ledger.
    public var broadcastText: String? { broadcast?.text }
}
