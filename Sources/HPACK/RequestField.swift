/// The fields that a request to APNs may have.
public enum RequestFieldName: Int, CaseIterable, Sendable {
    case method
    case scheme
    case path
    case authority
    case host
    case authorization
    /// `apns-topic`
    case topic
    /// `apns-push-type`
    case pushType
    /// `apns-id`
    case identifier
    /// `apns-expiration`
    case expiration
    /// `apns-priority`
    case priority
    /// `apns-collapse-id`
    case collapseIdentifier
    /// `content-length`: APNs does not need it, but some relays require it.
    case contentLength

    /// The name on the wire.
    public var text: StaticString {
        switch self {
        case .method: ":method"
        case .scheme: ":scheme"
        case .path: ":path"
        case .authority: ":authority"
        case .host: "host"
        case .authorization: "authorization"
        case .topic: "apns-topic"
        case .pushType: "apns-push-type"
        case .identifier: "apns-id"
        case .expiration: "apns-expiration"
        case .priority: "apns-priority"
        case .collapseIdentifier: "apns-collapse-id"
        case .contentLength: "content-length"
        }
    }

    /// First index of the name in the static table of RFC 7541; nil for Apple's names.
    public var staticIndex: Int? {
        switch self {
        case .method: 2
        case .scheme: 6
        case .path: 4
        case .authority: 1
        case .host: 38
        case .authorization: 23
        case .contentLength: 28
        case .topic, .pushType, .identifier, .expiration, .priority, .collapseIdentifier: nil
        }
    }

    /// Treatment of the field by the indexing policies.
    enum Kind {
        /// `:method` and `:scheme`: static entries.
        case pseudo
        /// Different in each request, never inserted.
        case path
        /// The three names that Apple asks to be indexed once and referred to afterwards.
        case indexedOnce
        /// Equal in many requests.
        case constant
    }

    var kind: Kind {
        switch self {
        case .method, .scheme: .pseudo
        case .path: .path
        case .identifier, .expiration, .collapseIdentifier: .indexedOnce
        case .authority, .host, .authorization, .topic, .pushType, .priority, .contentLength:
            .constant
        }
    }

    /// `text` as bytes.
    var bytes: [UInt8] { Array(text.description.utf8) }
}

/// A field of a request: its name, and its value or a hole for it.
public struct RequestField: Sendable, Equatable {
    /// A value that is either known when the block is encoded, or written later.
    public enum Value: Sendable, Equatable {
        /// These bytes in each request.
        case constant([UInt8])
        /// `count` bytes, written raw, that each request fills in.
        case hole(count: Int)

        /// Byte count of the value, before any coding.
        var count: Int {
            switch self {
            case .constant(let bytes): bytes.count
            case .hole(let count): count
            }
        }
    }

    /// Name of the field.
    public var name: RequestFieldName
    /// Value of the field.
    public var value: Value
    /// Revision of the field's constant value: the version of a provider token, or 0 for a value
    /// that never changes. Equal revisions of a field have equal bytes.
    var revision: UInt32

    /// Creates a field of a request.
    public init(_ name: RequestFieldName, _ value: Value, revision: UInt32 = 0) {
        self.name = name
        self.value = value
        self.revision = revision
    }

    /// Creates a field with the same value, the bytes of `text`, in each request.
    public init(_ name: RequestFieldName, _ text: StaticString) {
        self.init(name, .constant(Array(text.description.utf8)))
    }
}
