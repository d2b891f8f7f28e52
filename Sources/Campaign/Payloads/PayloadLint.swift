public import APNs
import Support

/// What Apple's rules say about a payload beyond its grammar.
public struct PayloadLint {
    /// Something in a payload that does not do what it seems to.
    public struct Finding: Sendable, Equatable {
        /// Whether the notification cannot work as it is; otherwise it is a warning.
        public var isError: Bool
        /// What it is and where.
        public var problem: PayloadCheck.Problem
    }

    /// The findings, in the order of the text, those about the whole at the end.
    public static func findings(_ payload: RawSpan, pushType: PushType) -> [Finding] {
        guard let document = try? PayloadDocument(payload) else { return [] }
        var lint = PayloadLint(document: document, pushType: pushType)
        lint.checkKeys()
        lint.checkValues()
        lint.checkContent()
        lint.checkText(payload)
        // Findings have offsets until here, so that the text is gone through once for each.
        let sorted = lint.found.enumerated().sorted { first, second in
            (first.element.offset ?? .max, first.offset)
                < (second.element.offset ?? .max, second.offset)
        }
        return sorted.map { _, found in
            let problem =
                found.offset.map { PayloadCheck.problem(payload, $0, found.message) }
                ?? PayloadCheck.Problem(line: nil, column: nil, message: found.message)
            return Finding(isError: found.isError, problem: problem)
        }
    }

    /// What a payload is that goes out by a protocol without push types.
    public static func legacyPushType(_ payload: RawSpan) -> PushType {
        guard let document = try? PayloadDocument(payload) else { return .alert }
        let isSeen = ["alert", "badge", "sound"].contains { document.member(["aps"], $0) != nil }
        if !isSeen, document.member(["aps"], "content-available") != nil { return .background }
        return !isSeen && document.member([], "mdm") != nil ? .mdm : .alert
    }

    let document: PayloadDocument
    let pushType: PushType
    private var found: [(isError: Bool, offset: Int?, message: String)] = []

    private init(document: PayloadDocument, pushType: PushType) {
        self.document = document
        self.pushType = pushType
    }

    mutating func error(_ offset: Int?, _ message: String) { found.append((true, offset, message)) }

    mutating func warn(_ offset: Int?, _ message: String) { found.append((false, offset, message)) }

    // MARK: Keys

    private mutating func checkKeys() {
        for member in document.members where member.isRepeated {
            error(
                member.keyOffset,
                "the key '\(member.key)' is there twice: readers differ in which they take, keep one"
            )
        }
        check(["aps"], PayloadKey.aps, "aps")
        check(["aps", "alert"], PayloadKey.alert(for: pushType), "alert")
        check(["aps", "sound"], PayloadKey.sound, "sound")
        checkOutside()
    }

    /// The members of an object whose keys Apple names.
    private mutating func check(_ path: [String], _ keys: [PayloadKey], _ name: String) {
        for member in document.members(of: path) {
            if let key = keys.first(where: { $0.name == member.key }) {
                check(member, key)
                continue
            }
            if let nearest = nearestName(to: member.key, among: keys.map(\.name)) {
                error(
                    member.keyOffset,
                    "'\(member.key)' is not a key of \(name): did you mean \(nearest)?")
            } else {
                let advice =
                    name == "aps" ? "put keys of your own beside aps" : "remove it"
                warn(
                    member.keyOffset,
                    "'\(member.key)' is not a key of \(name), devices ignore it: \(advice)")
            }
        }
    }

    private mutating func check(_ member: PayloadDocument.Member, _ key: PayloadKey) {
        if !key.kinds.contains(member.kind) {
            error(
                member.valueOffset,
                "'\(key.name)' is \(member.kind.words): it must be \(key.kinds.words)"
                    + Self.templateAdvice(member, key))
        } else if key.kinds == .array, !member.elements.isSubset(of: .string) {
            error(member.valueOffset, "'\(key.name)' must be an array of strings")
        }
        if let only = key.pushType, only != pushType {
            warn(
                member.keyOffset,
                "'\(key.name)' means something with push type \(only.rawValue) only: this is "
                    + "checked as \(pushType.rawValue)")
        }
    }

    /// How a column becomes what a key must be; empty if the value is not from a column.
    private static func templateAdvice(
        _ member: PayloadDocument.Member, _ key: PayloadKey
    ) -> String {
        guard member.isTemplate, member.kind == .string else { return "" }
        if key.kinds.contains(.number) { return ": write {{column:int}}" }
        return key.kinds.contains(.boolean) ? ": write {{column:bool}}" : ""
    }

    /// Keys beside `aps`: the sender's own, unless they look like Apple's.
    private mutating func checkOutside() {
        let names = PayloadKey.aps.map(\.name).filter { $0 != "event" && $0 != "category" }
        let hasAPS = document.member([], "aps") != nil
        for member in document.members(of: []) where member.key != "aps" {
            if !hasAPS, nearestName(to: member.key, among: ["aps"]) != nil, member.kind == .object {
                error(member.keyOffset, "'\(member.key)' is unknown: did you mean aps?")
            } else if names.contains(member.key) {
                warn(
                    member.keyOffset,
                    "'\(member.key)' is beside aps, where devices ignore it: put it inside aps")
            } else if member.kind == .null {
                warn(
                    member.valueOffset,
                    "'\(member.key)' is null, which Apple does not list as a value: leave it out")
            }
        }
    }
}
