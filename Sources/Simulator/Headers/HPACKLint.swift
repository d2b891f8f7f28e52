internal import BroadsideHPACK
internal import BroadsidePrimitives

/// Checks a client's header blocks against the indexing policy that Apple recommends.
///
/// A cell shows when the row's finding is a deviation from the column's policy. Notes follow the
/// table.
///
/// | Finding | strict | compact | current |
/// | --- | --- | --- | --- |
/// | a changing header's name is inserted again | always | always | always |
/// | a changing header is not inserted the first time | always | always | always |
/// | a changing header is indexed later | always | if it is apns-id | always |
/// | `:path` is inserted | always | always | always |
/// | the provider token is inserted | always | if its value is unchanged | always |
/// | another header is inserted | always | if its value is unchanged | if its value is unchanged |
/// | a constant header is neither inserted nor indexed | never | always | always |
/// | `:method` or `:scheme` is a literal | never | always | if it is not inserted |
/// | a name is a literal although it is in the static table | always | always | always |
/// | an entry is evicted | always | always | always |
///
/// - The changing headers are apns-id, apns-expiration and apns-collapse-id.
/// - Never-indexed literals count as literals without indexing.
/// - A constant header may be a literal if the table has no room for the header.
/// - A literal apns-priority is permitted if its value differs from the inserted one, because the
///   arms of a campaign may have different priorities.
/// - With `current`, the provider token is always a literal.
/// - With `strict`, a literal `:method` is not a deviation, because the text on which `strict` is
///   based requires literals for all other headers.
struct HPACKLint {
    private let profile: IndexingPolicy
    private var table = LintTable()
    private(set) var findings: [Finding: UInt64] = [:]
    private(set) var blocks: UInt64 = 0
    /// The first deviation of the block being checked.
    private var first: Finding?
    private var insertedNames: Set<LintName> = []
    /// Hash of the last inserted value of each header.
    private var insertedValues: [LintName: UInt64] = [:]

    /// A kind of deviation, and the header in which it occurred.
    struct Finding: Hashable, CustomStringConvertible {
        enum Kind: String {
            case insertedAgain = "inserted again"
            case notInserted = "not inserted the first time"
            case nameNotIndexed = "name spelled out though it is in a table"
            case inserted = "inserted into the table"
            case indexed = "indexed"
            case literal = "a literal, though constant"
            case pseudoNotIndexed = "a literal, though a static entry"
            case evicted = "entries evicted from the table"
            case malformed = "malformed header block"
        }
        let kind: Kind
        let name: LintName?

        var description: String {
            guard let name else { return kind.rawValue }
            return "\(name.text) \(kind.rawValue)"
        }
    }

    init(profile: IndexingPolicy) {
        self.profile = profile
    }

    /// Checks a block, counts its deviations and returns the first.
    mutating func check(_ block: RawSpan) -> Finding? {
        blocks += 1
        first = nil
        var walker = BlockWalker()
        do throws(HPACKError) {
            while let field = try walker.next(block) {
                if field.representation == .sizeUpdate {
                    table.limit(field.index)
                    continue
                }
                guard let name = name(of: field, in: block) else {
                    report(.malformed, nil)
                    break
                }
                check(field, name, block)
            }
        } catch {
            report(.malformed, nil)
        }
        return first
    }

    private mutating func report(_ kind: Finding.Kind, _ name: LintName?) {
        let finding = Finding(kind: kind, name: name)
        findings[finding, default: 0] += 1
        if first == nil { first = finding }
        assert(blocks > 0, "a finding without a block")
    }

    // MARK: One field

    private mutating func check(
        _ field: BlockWalker.Field, _ name: LintName, _ block: RawSpan
    ) {
        if field.index == 0, name.staticIndex != nil { report(.nameNotIndexed, name) }
        switch name.role {
        case .pseudo: checkPseudo(field, name)
        case .changing: checkChanging(field, name)
        case .path: checkNeverIndexed(field, name)
        case .constant where profile == .current && name == .field(.authorization):
            checkNeverIndexed(field, name)
        case .constant: checkConstant(field, name, block)
        }
        guard field.representation == .incremental else { return }
        let value = LintText.decoded(field.value, in: block)
        insertedNames.insert(name)
        insertedValues[name] = FNV1aHash.hash(value)
        if table.insert(name, valueCount: value.count) > 0 {
            report(.evicted, nil)
        }
    }

    private mutating func checkPseudo(_ field: BlockWalker.Field, _ name: LintName) {
        switch (profile, field.representation) {
        case (_, .indexed) where field.index <= StaticTable.count: break
        case (.strict, .withoutIndexing), (.strict, .neverIndexed), (.current, .indexed): break
        case (.current, .incremental) where !insertedNames.contains(name): break
        default: report(.pseudoNotIndexed, name)
        }
    }

    private mutating func checkNeverIndexed(_ field: BlockWalker.Field, _ name: LintName) {
        if field.representation == .incremental { report(.inserted, name) }
        if field.representation == .indexed { report(.indexed, name) }
    }

    private mutating func checkChanging(
        _ field: BlockWalker.Field, _ name: LintName
    ) {
        let isKnown = insertedNames.contains(name)
        switch field.representation {
        case .incremental:
            if isKnown { report(.insertedAgain, name) }
        case .withoutIndexing, .neverIndexed:
            if !isKnown {
                report(.notInserted, name)
            } else if field.index == 0, table.has(name) {
                // The name was evicted when the server reduced the table size.
                report(.nameNotIndexed, name)
            }
        // In the compact profile an unchanged expiration may be fully indexed.
        case .indexed where profile == .compact && name != .field(.identifier): break
        default: report(.indexed, name)
        }
    }

    private mutating func checkConstant(
        _ field: BlockWalker.Field, _ name: LintName, _ block: RawSpan
    ) {
        switch (profile, field.representation) {
        case (.strict, .incremental): report(.inserted, name)
        case (.strict, .indexed): report(.indexed, name)
        case (.compact, .incremental), (.current, .incremental):
            let value = FNV1aHash.hash(LintText.decoded(field.value, in: block))
            if insertedValues[name] == value { report(.insertedAgain, name) }
        case (.compact, .withoutIndexing), (.compact, .neverIndexed),
            (.current, .withoutIndexing), (.current, .neverIndexed):
            // A literal is correct if an insertion would evict entries that others refer to.
            let value = LintText.decoded(field.value, in: block)
            guard name.isOfAPNs, table.hasRoom(for: name, valueCount: value.count) else { return }
            if name == .field(.priority), let inserted = insertedValues[name],
                inserted != FNV1aHash.hash(value)
            {
                return
            }
            report(.literal, name)
        default: break
        }
    }

    private func name(
        of field: BlockWalker.Field, in block: RawSpan
    ) -> LintName? {
        if field.index == 0 {
            return LintName(LintText.decoded(field.name, in: block))
        }
        if field.index <= StaticTable.count {
            return LintName(Array("\(StaticTable.name(at: field.index))".utf8))
        }
        return table.name(at: field.index)
    }
}
