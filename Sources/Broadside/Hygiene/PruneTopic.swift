import BroadsideHygiene
import BroadsideLedgerFormat
import BroadsideLedgers
import BroadsidePayloads
import BroadsideSupport

/// Topic of the tokens in a list. The topic decides which verdicts about these tokens are used.
enum PruneTopic {
    /// Every verdict about a token is used, regardless of its topic.
    case any
    /// All rows have this topic.
    case one(String)
    /// Each row names its topic. `option` is the option that names the columns, for messages.
    case ofRow(TextTemplate, option: String)

    /// Determines the topic from the option `--topic`. Without this option, the ledgers decide: if
    /// all of them have the same topic template, this template also applies to the rows of the
    /// list.
    ///
    /// - Throws: Exit code 2 if the option is not a valid template, or if it is missing but needed.
    init(_ options: PruneOptions) throws(BroadsideError) {
        if let topic = options.topic {
            let template = try Self.template(topic)
            self = template.isPersonal ? .ofRow(template, option: "--topic") : .one(topic)
            return
        }
        var templates: Set<String> = []
        var hasOthers = false
        for path in options.ledgers {
            for (_, manifest) in try LedgerDirectory.openToRead(path).ledgers() {
                let identity = manifest.identity
                if identity.hasRowTopics, let topic = identity.topic {
                    templates.insert(topic)
                } else {
                    hasOthers = true
                }
            }
        }
        guard let first = templates.first else {
            self = .any
            return
        }
        guard templates.count == 1, !hasOthers else {
            throw .usage(
                "topic",
                "is missing, but a token that is dead for one of the ledgers' topics may be alive "
                    + "for another: name the topic of the list's rows, or the column of their topics, "
                    + "such as --topic '{{app}}'")
        }
        self = .ofRow(try Self.template(first), option: "--topic '\(first)', as in the ledger")
    }

    private static func template(_ text: String) throws(BroadsideError) -> TextTemplate {
        do throws(TextTemplate.Problem) {
            return try TextTemplate(text)
        } catch {
            throw .usage("topic", "\(error.message)")
        }
    }

    /// Columns of the list that the topic is made from, with the option that requires them.
    var columns: [(name: String, location: String)] {
        guard case .ofRow(let template, let option) = self else { return [] }
        return template.columns.map { ($0, option) }
    }

    private var isAny: Bool {
        if case .any = self { true } else { false }
    }

    /// Scope of all rows; nil: verdicts of all scopes are needed.
    var scope: TokenScope? {
        guard case .one(let topic) = self else { return nil }
        return TokenScope(topic: topic, environment: nil)
    }

    /// Warning about ledgers whose verdicts belong to other apps or environments; nil if no warning
    /// is needed.
    ///
    /// - Parameters:
    ///   - all: Scope of each ledger.
    ///   - found: Scopes of the verdicts that are used.
    func warning(_ all: [TokenScope], _ found: [TokenScope]) -> String? {
        if let scope {
            let foreign = all.count { !$0.mayBe(scope) }
            if foreign > 0 {
                return
                    "\(foreign) of \(all.count) ledgers \(foreign == 1 ? "has" : "have") a topic "
                    + "other than \(scope.topic ?? ""): reports of such ledgers are ignored"
            }
        }
        // If the topic of the rows is known, verdicts of other topics do no harm.
        let scopes =
            isAny ? found : found.map { TokenScope(topic: nil, environment: $0.environment) }
        guard
            let other = scopes.first(where: { scope in scopes.contains { !$0.mayBe(scope) } }),
            let second = scopes.first(where: { !$0.mayBe(other) })
        else { return nil }
        let (kind, values): (String, (TokenScope) -> String?) =
            other.topic != nil && second.topic != nil && other.topic != second.topic
            ? ("topics", \.topic) : ("environments", \.environment)
        let names = [values(other), values(second)].compactMap { $0 }.joined(separator: " and ")
        return
            "the ledgers have different \(kind), \(names), and a token that is alive for one "
            + "can be dead for the other: prune the list of each app and environment with "
            + "the ledgers of that app and environment"
    }
}
