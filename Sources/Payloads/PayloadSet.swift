/// Everything that a campaign sends to its rows: one payload, or one per value of a column, and the
/// headers that differ per row.
public struct PayloadSet: Sendable {
    /// A column whose value chooses the payload of a row.
    public struct Choice: Sendable {
        /// A value, and the index of its payload.
        typealias Name = (value: [UInt8], template: Int)

        /// Name of the column.
        public var column: String
        /// The values with a payload of their own, sorted by their bytes.
        let names: [Name]
        /// The values that are ASCII, in lower case and with hyphens in place of underscores,
        /// sorted by their bytes.
        let caselessNames: [Name]
        /// Index of the payload for each value that is not ASCII, with hyphens in place of
        /// underscores, as it is written and in lower case. Any Unicode form of a value finds its
        /// key, because `String` treats these forms as equal.
        let foldedNames: [String: Int]
        /// Index of the default payload, for values without a payload of their own; nil if there is
        /// none.
        let fallback: Int?

        /// Whether there is a default payload, for values without a payload of their own.
        public var hasFallback: Bool { fallback != nil }

        /// - Parameters:
        ///   - names: Each value, and the index of its payload in `PayloadSet.templates`.
        ///   - fallback: Index of the default payload, for values that `names` lacks; nil if there
        ///     is none.
        public init(column: String, names: [String: Int], fallback: Int?) {
            self.column = column
            // `pt-BR` also finds `pt_BR.json`, unless a file has its exact name.
            var known = names
            for (name, template) in names.sorted(by: { $0.key < $1.key }) {
                let other = Self.folded(name)
                if known[other] == nil { known[other] = template }
            }
            self.names = Self.sorted(known)
            // Of names that differ only in case, a value in another case finds the first.
            let caseless = Dictionary(
                names.map { (Self.folded($0.key).lowercased(), ($0.key, $0.value)) },
                uniquingKeysWith: { $0 < $1 ? $0 : $1 }
            ).mapValues(\.1)
            caselessNames = Self.sorted(caseless.filter { $0.key.utf8.allSatisfy { $0 < 0x80 } })
            let folded = Dictionary(
                known.map { (Self.folded($0.key), $0.value) }, uniquingKeysWith: min)
            foldedNames = folded.merging(caseless) { own, _ in own }
                .filter { !$0.key.utf8.allSatisfy { $0 < 0x80 } }
            self.fallback = fallback
            assert(names.allSatisfy { known[$0.key] == $0.value }, "a file's own name comes first")
        }

        private static func sorted(_ names: [String: Int]) -> [Name] {
            names.map { (Array($0.key.utf8), $0.value) }
                .sorted { $0.0.lexicographicallyPrecedes($1.0) }
        }

        /// Text with hyphens in place of underscores.
        static func folded(_ text: String) -> String { String(text.map { $0 == "_" ? "-" : $0 }) }
    }

    /// The apns-topic, if it differs per row.
    public struct RowTopic: Sendable {
        /// Text with columns to fill in.
        public let template: TextTemplate
        /// Topics found so far.
        public let topics: RowTopics

        /// Creates a templated topic, with storage for the topics found.
        public init(template: TextTemplate, topics: RowTopics) {
            self.template = template
            self.topics = topics
        }
    }

    /// Maximum number of payloads of a campaign.
    public static let templateLimit = 1_000

    /// Payloads, at least one.
    public let templates: [PayloadTemplate]
    /// Choice of a payload per row; nil if all rows get the first payload.
    let choice: Choice?
    /// The apns-collapse-id, if it differs per row.
    public let collapse: TextTemplate?
    /// The apns-topic, if it differs per row.
    public private(set) var topic: RowTopic?
    /// Arms into which devices are split; nil if there are none.
    public let arms: ArmPayloads?
    /// Maximum number of bytes of a payload.
    public let limit: Int

    /// Creates the set of a campaign's payloads.
    public init(
        templates: [PayloadTemplate], choice: Choice?, collapse: TextTemplate?,
        topic: RowTopic? = nil, arms: ArmPayloads? = nil, limit: Int
    ) {
        precondition(!templates.isEmpty && templates.count <= Self.templateLimit)
        assert(
            choice.map { $0.names.allSatisfy { templates.indices.contains($0.template) } } ?? true,
            "the payload of each value is in the set")
        assert(
            choice?.fallback.map(templates.indices.contains) ?? true,
            "the default payload is in the set")
        assert(
            arms?.own.compactMap(\.template).allSatisfy(templates.indices.contains) ?? true,
            "an arm's payload is in the set")
        self.templates = templates
        self.choice = choice
        self.collapse = collapse
        self.topic = topic
        self.arms = arms
        self.limit = limit
    }

    /// Creates a set of one payload, the same for all rows.
    public init(constant payload: [UInt8]) {
        self.init(
            templates: [PayloadTemplate(constant: payload)], choice: nil, collapse: nil,
            limit: payload.count)
    }

    /// The same payloads for code that decides about rows but does not send them. The topics of
    /// these rows are checked, but are not topics of the campaign.
    public var withUncountedTopics: PayloadSet {
        guard let topic else { return self }
        var set = self
        set.topic = RowTopic(
            template: topic.template,
            topics: RowTopics(pushType: topic.topics.pushType, onlyChecks: true))
        return set
    }

    /// Whether requests differ per row in more than the token.
    public var isPersonal: Bool {
        choice != nil || collapse != nil || topic != nil || arms != nil || templates[0].isPersonal
    }

    /// Whether the apns-collapse-id differs per row.
    public var hasRowCollapse: Bool { collapse != nil || arms?.haveCollapse == true }
}

extension PayloadTemplate {
    /// Creates a payload that is sent unchanged, including braces.
    init(constant payload: [UInt8]) {
        self.init(segments: [], tail: payload, uses: [])
    }
}
