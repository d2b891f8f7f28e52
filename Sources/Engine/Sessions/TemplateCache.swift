import BroadsideAPNs
import BroadsideHPACK

/// Key of a template: positions of the indexed fields in the server's table, and the provider token
/// in use.
struct TemplateKey: Equatable {
    var layout: DynamicTableMirror.Layout
    var authorizationVersion: UInt32
    /// Whether the template has a hole for a row's own collapse ID.
    var hasPersonalCollapse = false
    /// The number of the row's topic plus 1; 0 if all rows have the same topic.
    var topic: UInt16 = 0
    /// The priority of the row's arm; 0 if the campaign's priority applies.
    var priority: UInt8 = 0
}

/// The request bytes that are encoded once and used for many requests.
protocol PrecomputedRequest {
    func deallocate()
}

extension RequestTemplate: PrecomputedRequest {}

/// Templates in use. Usually there is one, because the tables of all connections are equal after
/// their first request.
struct TemplateCache<Template: PrecomputedRequest> {
    private var entries: [(key: TemplateKey, template: Template)] = []

    /// Maximum number of templates to keep. Further templates are encoded again each time. The
    /// header tables of connections differ only if a server changes the limit on its table at an
    /// unusual time.
    static var limit: Int { 16 }
    /// Limit of this cache. It is larger if rows name their topics, because each topic has separate
    /// templates.
    private let limit: Int

    /// - Parameter topics: Maximum number of topics that rows name; 0: rows name no topics.
    init(topics: Int = 0) { limit = Self.limit + 2 * topics }

    func template(for key: TemplateKey) -> Template? {
        // Accesses the entries by index, because iterating over the array would count a reference
        // to it.
        for position in entries.indices where entries[position].key == key {
            return entries[position].template
        }
        return nil
    }

    mutating func insert(_ template: Template, for key: TemplateKey) {
        assert(entries.count <= limit, "templates are bounded")
        assert(entries.allSatisfy { $0.key != key }, "a request is laid down once")
        if entries.count == limit {
            entries.removeFirst().template.deallocate()
        }
        entries.append((key, template))
    }

    /// Drops templates of older provider tokens.
    mutating func removeAll(olderThan version: UInt32) {
        entries.removeAll { entry in
            guard entry.key.authorizationVersion < version else { return false }
            entry.template.deallocate()
            return true
        }
    }

    var count: Int { entries.count }

    func deallocate() {
        for entry in entries {
            entry.template.deallocate()
        }
    }
}

extension ReactorSettings {
    /// Encodes the next request for a connection whose table is `mirror`, and updates the mirror.
    /// A template that changed the table is valid for one request.
    func template(
        authorization: (value: [UInt8]?, version: UInt32), mirror: inout DynamicTableMirror
    ) -> (template: RequestTemplate, changedTable: Bool) {
        let generation = mirror.generation
        var block = RequestBlockEncoder.encode(
            fields(authorization: authorization.value, version: authorization.version),
            mirror: &mirror, indexingPolicy: indexingPolicy, huffman: true)
        fillIdentifier(&block)
        return (
            RequestTemplate(block: block, payload: payload), mirror.generation != generation
        )
    }

    /// Writes the apns-id into its hole: the campaign's part, and row number 0.
    func fillIdentifier(_ block: inout EncodedBlock) {
        guard let hole = block.hole(.identifier) else {
            preconditionFailure("the fields have an apns-id")
        }
        // SAFETY: the encoder reports the hole's range within its bytes, which do not move during
        // the call; the output checks its bounds.
        unsafe block.bytes.withUnsafeMutableBytes { bytes in
            let target = unsafe UnsafeMutableRawBufferPointer(rebasing: bytes[hole])
            var identifier = unsafe OutputRawSpan(buffer: target, initializedCount: 0)
            NotificationID(campaign: campaign, part: part, row: 0).write(into: &identifier)
            _ = unsafe identifier.finalize(for: target)
        }
    }
}
