internal import BroadsidePrimitives
import BroadsideSupport

/// Title, subtitle and body of a campaign's notification, by which people recognize the campaign.
package struct AlertText: Codable, Hashable, Sendable {
    var title: String?
    var subtitle: String?
    var body: String?
    /// Whether the payload is a template. If so, the texts are those of the first row that can be
    /// sent.
    package var isFirstRows = false

    /// Maximum number of Unicode scalars in each of title, subtitle and body.
    static let partLimit = 500

    /// Title, subtitle and body on one line.
    package var line: String {
        [title, subtitle, body].compactMap { $0 }.joined(separator: " / ")
    }

    /// - Returns: nil if the payload displays nothing, as in a background push.
    package init?(payload: [UInt8]) {
        guard let read = try? JSONCoding.decode(Payload.self, from: payload),
            let alert = read.aps?.alert
        else { return nil }
        func shown(_ text: String?) -> String? { text.map { printable($0, limit: Self.partLimit) } }
        switch alert {
        case .text(let text): body = shown(text)
        case .parts(let parts):
            // Localized texts are shown as their keys.
            title = shown(parts.title ?? parts.titleLocKey)
            subtitle = shown(parts.subtitle ?? parts.subtitleLocKey)
            body = shown(parts.body ?? parts.locKey)
        }
        if title == nil, subtitle == nil, body == nil { return nil }
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
