import Campaign
import FoundationEssentials
import Lists
import Support

/// What a notification shows: its title, subtitle and body, for people to recognize a campaign by.
struct AlertText: Codable, Hashable, Sendable {
    var title: String?
    var subtitle: String?
    var body: String?
    /// The payload is a template: this is the first row's that can be sent.
    var isFirstRows = false

    /// Scalars of each part.
    static let partLimit = 500

    /// One line.
    var line: String {
        [title, subtitle, body].compactMap { $0 }.joined(separator: " / ")
    }

    /// nil where the payload shows nothing, as a background push.
    init?(payload: [UInt8]) {
        guard let read = try? JSONDecoder().decode(Payload.self, from: Data(payload)),
            let alert = read.aps?.alert
        else { return nil }
        func shown(_ text: String?) -> String? { text.map { printable($0, limit: Self.partLimit) } }
        switch alert {
        case .text(let text): body = shown(text)
        case .parts(let parts):
            // Texts of the app's own are named by their keys.
            title = shown(parts.title ?? parts.titleLocKey)
            subtitle = shown(parts.subtitle ?? parts.subtitleLocKey)
            body = shown(parts.body ?? parts.locKey)
        }
        if title == nil, subtitle == nil, body == nil { return nil }
    }

    /// What a campaign shows; of a template, what its first row gets.
    ///
    /// - Returns: nil where that cannot be told.
    init?(_ plan: Plan, _ list: TokenList) {
        let set = plan.payloads.set
        let payload =
            set.isPersonal ? Self.firstPayload(set, list) : set.templates.first?.constantPayload
        guard let payload else { return nil }
        self.init(payload: payload)
        isFirstRows = set.isPersonal
    }

    /// Rows that are looked at for one that can be sent.
    private static let rowsLimit = 100

    private static func firstPayload(_ set: PayloadSet, _ list: TokenList) -> [UInt8]? {
        guard
            let source = try? ListSource(
                list: list, pool: ChunkPool(limit: 3), plan: nil, rowsLimit: nil),
            let chunk = (try? source.next(rowLimit: rowsLimit)) ?? nil
        else { return nil }
        var reader = RowReader(layout: list.layout)
        var personalizer = RowPersonalizer(set, layout: list.layout)
        reader.open(chunk)
        defer { _ = reader.close() }
        while reader.next() != nil {
            guard case .made(let shape) = personalizer.personalize(reader) else { continue }
            let count = Int(shape.payloadCount)
            let pieces = unsafe personalizer.lastPieces
            // Of a payload without placeholders there are no pieces, and nothing is read of them.
            let nothing = UnsafeMutableRawPointer.allocate(byteCount: 1, alignment: 1)
            defer { unsafe nothing.deallocate() }
            return unsafe [UInt8](unsafeUninitializedCapacity: count) { buffer, written in
                // SAFETY: there is room for the shape's count, which is what is written.
                if let base = buffer.baseAddress {
                    unsafe personalizer.writePayload(
                        shape, pieces: pieces.baseAddress ?? UnsafeRawPointer(nothing),
                        to: UnsafeMutableRawPointer(base))
                    written = count
                }
            }
        }
        return nil
    }

    private struct Payload: Decodable {
        struct APS: Decodable {
            var alert: Alert?
        }

        var aps: APS?
    }

    private struct Parts: Decodable {
        var title, subtitle, body, locKey, titleLocKey, subtitleLocKey: String?

        private enum CodingKeys: String, CodingKey {
            case title, subtitle, body
            case locKey = "loc-key"
            case titleLocKey = "title-loc-key"
            case subtitleLocKey = "subtitle-loc-key"
        }
    }

    private enum Alert: Decodable {
        case text(String)
        case parts(Parts)

        init(from decoder: any Decoder) throws {
            if let text = try? decoder.singleValueContainer().decode(String.self) {
                self = .text(text)
            } else {
                self = .parts(try Parts(from: decoder))
            }
        }
    }
}
