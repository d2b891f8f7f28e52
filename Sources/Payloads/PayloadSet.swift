/// All that a campaign sends to its rows: one payload or one a value of a column, and what of the
/// headers differs from row to row.
public struct PayloadSet: Sendable {
    /// A column whose value says which payload a row gets.
    public struct Choice: Sendable {
        /// Its name.
        public var column: String
        /// The values that have a payload of their own, sorted by their bytes.
        let names: [(value: [UInt8], template: Int)]
        /// The payload for all other values; nil: they have none.
        let fallback: Int?

        /// Whether a value without a payload of its own gets one.
        public var hasFallback: Bool { fallback != nil }

        /// - Parameters:
        ///   - names: Each value, and the place of its payload in `PayloadSet.templates`.
        ///   - fallback: The place of the payload for all other values.
        public init(column: String, names: [String: Int], fallback: Int?) {
            self.column = column
            // `pt_BR.json` is found by `pt-BR`, too, where no file is called so.
            var known = names
            for (name, template) in names.sorted(by: { $0.key < $1.key }) {
                let other = String(name.map { $0 == "_" ? "-" : $0 })
                if known[other] == nil { known[other] = template }
            }
            self.names = known.map { (Array($0.key.utf8), $0.value) }
                .sorted { $0.0.lexicographicallyPrecedes($1.0) }
            self.fallback = fallback
        }
    }

    /// The apns-topic where it differs from row to row.
    public struct RowTopic: Sendable {
        /// The text in which columns are filled in.
        public let template: TextTemplate
        /// The topics that were met.
        public let topics: RowTopics

        /// A topic with columns in it, and where those that are met are kept.
        public init(template: TextTemplate, topics: RowTopics) {
            self.template = template
            self.topics = topics
        }
    }

    /// The most payloads of a campaign.
    public static let templateLimit = 1_000

    /// The payloads, at least one.
    public let templates: [PayloadTemplate]
    /// Which row gets which; nil: all get the first.
    let choice: Choice?
    /// The apns-collapse-id where it differs from row to row.
    public let collapse: TextTemplate?
    /// The apns-topic where it differs from row to row.
    public let topic: RowTopic?
    /// The most bytes of a payload.
    public let limit: Int

    /// Puts a campaign's payloads together.
    public init(
        templates: [PayloadTemplate], choice: Choice?, collapse: TextTemplate?,
        topic: RowTopic? = nil, limit: Int
    ) {
        precondition(!templates.isEmpty && templates.count <= Self.templateLimit)
        self.templates = templates
        self.choice = choice
        self.collapse = collapse
        self.topic = topic
        self.limit = limit
    }

    /// One payload, the same for all rows.
    public init(constant payload: [UInt8]) {
        self.init(
            templates: [PayloadTemplate(constant: payload)], choice: nil, collapse: nil,
            limit: payload.count)
    }

    /// Whether a row's request holds more of it than its token.
    public var isPersonal: Bool {
        choice != nil || collapse != nil || topic != nil || templates[0].isPersonal
    }
}

extension PayloadTemplate {
    /// A payload that is sent as it is, braces and all.
    init(constant payload: [UInt8]) {
        self.init(segments: [], tail: payload, uses: [])
    }
}
