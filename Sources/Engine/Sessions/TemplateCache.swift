import BroadsideAPNs
import BroadsideHPACK

/// What decides how a request reads on a connection: where the indexed fields lie in the server's
/// table, and which provider token is in use.
struct TemplateKey: Equatable {
    var layout: DynamicTableMirror.Layout
    var authorizationVersion: UInt32
    /// Whether there is room for a collapse ID of the row's own.
    var hasPersonalCollapse = false
}

/// What is laid down once and used for many requests.
protocol PrecomputedRequest {
    func deallocate()
}

extension RequestTemplate: PrecomputedRequest {}

/// The templates in use. Nearly always one: connections whose first request is out agree.
struct TemplateCache<Template: PrecomputedRequest> {
    private var entries: [(key: TemplateKey, template: Template)] = []

    /// Tables differ where a server changes its limit at odd moments; more shapes than this are
    /// laid down anew each time.
    static var limit: Int { 16 }

    func template(for key: TemplateKey) -> Template? {
        // By position: going through the array itself would count a reference to it.
        for position in entries.indices where entries[position].key == key {
            return entries[position].template
        }
        return nil
    }

    mutating func insert(_ template: Template, for key: TemplateKey) {
        if entries.count == Self.limit {
            entries.removeFirst().template.deallocate()
        }
        entries.append((key, template))
    }

    /// Forgets templates of provider tokens that are no longer used.
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
    /// Lays down the request that comes next on a connection whose table is `mirror`, and brings
    /// the mirror up to date. Where that changed the table the template serves once.
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

    /// Writes the campaign's part of the apns-id, and the first row's.
    func fillIdentifier(_ block: inout EncodedBlock) {
        guard let hole = block.hole(.identifier) else {
            preconditionFailure("the fields have an apns-id")
        }
        // SAFETY: the encoder says where the hole lies in its bytes, which stay where they are
        // during the call; the output checks its count.
        unsafe block.bytes.withUnsafeMutableBytes { bytes in
            let target = unsafe UnsafeMutableRawBufferPointer(rebasing: bytes[hole])
            var identifier = unsafe OutputRawSpan(buffer: target, initializedCount: 0)
            NotificationID(campaign: campaign, part: part, row: 0).write(into: &identifier)
            _ = unsafe identifier.finalize(for: target)
        }
    }
}
