import BroadsideCampaigns
import BroadsideSupport
public import FoundationEssentials

/// A device, with the values of its fields. Payloads and filters refer to these fields.
public struct Recipient: Sendable {
    /// Device token, in hexadecimal digits.
    public var token: String
    /// The values of the device, by field name.
    public var fields: [String: String]

    /// Creates a recipient.
    public init(_ token: String, fields: [String: String] = [:]) {
        self.token = token
        self.fields = fields
    }
}

/// Devices of a campaign.
public struct CampaignTokens: Sendable {
    enum Source: Sendable {
        case file(URL)
        case device(String)
        case sequence(@Sendable (RowSpool) async -> Void)
    }

    let source: Source

    /// Name of the token column in the ledger's copy of a sequence.
    private static let column = "token"
    /// Size of the blocks in which rows are passed to the run, bytes.
    private static let blockByteCount = 1 << 18

    /// A list in a file: lines, CSV, TSV or JSON lines, also compressed.
    public static func file(_ file: URL) -> CampaignTokens {
        CampaignTokens(source: .file(file))
    }

    /// A single device.
    public static func device(_ token: String) -> CampaignTokens {
        CampaignTokens(source: .device(token))
    }

    /// Recipients from a sequence, such as the rows of a database query. They are copied to the
    /// ledger's directory before the first notification is sent; `RunOptions.tokensByteLimit`
    /// limits the size of the copy. A run that continues the campaign reads the copy.
    public static func rows<Rows: AsyncSequence & Sendable>(_ rows: Rows) -> CampaignTokens
    where Rows.Element == Recipient {
        CampaignTokens(
            source: .sequence { spool in
                guard await spool.isWanted() else { return }
                var block: [UInt8] = []
                do {
                    for try await recipient in rows {
                        append(recipient, to: &block)
                        guard block.count >= blockByteCount else { continue }
                        guard await spool.put(block) else { return }
                        block.removeAll()
                    }
                    try Task.checkCancellation()
                } catch {
                    spool.finish(
                        .usage("tokens", "ended early, and nothing was sent: \(error)"))
                    return
                }
                guard await spool.put(block) else { return }
                spool.finish(nil)
            })
    }

    private static func append(_ recipient: Recipient, to block: inout [UInt8]) {
        var line = JSONLine()
        line.add(column, recipient.token)
        for (name, value) in recipient.fields.sorted(by: { $0.key < $1.key }) where name != column {
            line.add(name, value)
        }
        block += line.object.utf8
        block.append(0x0A)
    }
}
