public import BroadsideAPNs
import BroadsidePrimitives
import BroadsideSupport

/// Checks a payload against Apple's rules beyond JSON syntax.
public struct PayloadLint {
    /// A part of a payload that does not work as intended.
    public struct Finding: Sendable, Equatable {
        /// Whether the finding is an error: the notification cannot work as written. If false, the
        /// finding is a warning.
        public var isError: Bool
        /// Description and location.
        public var problem: PayloadCheck.Problem
    }

    /// Returns the findings, in the order of the text; those about the whole payload come last.
    ///
    /// - Parameters:
    ///   - topic: Topic, if it is known; nil: the payload may be for a Wallet pass.
    ///   - isBroadcast: Whether the payload is for a broadcast channel.
    ///   - isFilledIn: Whether the payload is one row's, in which braces are text.
    ///   - now: Present time, in seconds since 1970; nil: a Live Activity's timestamp is not
    ///     compared with it.
    public static func findings(
        _ payload: RawSpan, pushType: PushType, topic: String? = nil, isBroadcast: Bool = false,
        isFilledIn: Bool = false, now: UInt64? = nil
    ) -> [Finding] {
        guard let document = try? PayloadDocument(payload) else { return [] }
        var lint = PayloadLint(
            document: document, pushType: pushType, topic: topic, isBroadcast: isBroadcast,
            now: now)
        lint.checkKeys()
        lint.checkValues()
        lint.checkContent()
        lint.checkText(payload)
        lint.checkEncodedAlert(payload, isFilledIn: isFilledIn)
        // The values of rows are checked in all rows, as `DamagedTexts`.
        if !isFilledIn {
            lint.checkEntities(payload)
            lint.checkLostCharacters(payload)
            lint.checkPlaceholders(payload)
        }
        // Findings have offsets until here, so that locations are computed only once per finding.
        assert(
            lint.found.allSatisfy { $0.offset ?? 0 < payload.byteCount },
            "each finding has an offset within the payload")
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

    /// Push type of a payload that is sent by a protocol without push types.
    public static func legacyPushType(_ payload: RawSpan) -> PushType {
        guard let document = try? PayloadDocument(payload) else { return .alert }
        let isSeen = ["alert", "badge", "sound"].contains { document.member(["aps"], $0) != nil }
        if !isSeen, document.member(["aps"], "content-available") != nil { return .background }
        return !isSeen && document.member([], "mdm") != nil ? .mdm : .alert
    }

    let document: PayloadDocument
    let pushType: PushType
    let topic: String?
    let isBroadcast: Bool
    private let now: UInt64?
    private var found: [(isError: Bool, offset: Int?, message: String)] = []

    private init(
        document: PayloadDocument, pushType: PushType, topic: String?, isBroadcast: Bool,
        now: UInt64?
    ) {
        assert(!isBroadcast || pushType == .liveActivity, "broadcasts are for Live Activities only")
        self.document = document
        self.pushType = pushType
        self.topic = topic
        self.isBroadcast = isBroadcast
        self.now = now
    }

    mutating func error(_ offset: Int?, _ message: String) { found.append((true, offset, message)) }

    mutating func warn(_ offset: Int?, _ message: String) { found.append((false, offset, message)) }

    // MARK: Keys

    private mutating func checkKeys() {
        for member in document.members where member.isRepeated {
            error(
                member.keyOffset,
                "the key '\(member.key)' occurs twice, and readers differ in "
                    + "which one they use: keep one"
            )
        }
        check(["aps"], PayloadKey.aps, "aps")
        check(["aps", "alert"], PayloadKey.alert(for: pushType), "alert")
        check(["aps", "sound"], PayloadKey.sound, "sound")
        checkOutside()
    }

    /// Checks the members of an object whose keys Apple defines.
    private mutating func check(_ path: [String], _ keys: [PayloadKey], _ name: String) {
        for member in document.members(of: path) {
            if let key = keys.first(where: { $0.name == member.key }) {
                check(member, key)
                continue
            }
            if name != "aps", isKeyOfAPS(member.key) {
                warn(
                    member.keyOffset,
                    "'\(member.key)' is not a key of \(name), so devices ignore it: put it beside "
                        + "\(name), inside aps")
            } else if let nearest = nearestName(to: member.key, among: keys.map(\.name)) {
                error(
                    member.keyOffset,
                    "'\(member.key)' is not a key of \(name): did you mean \(nearest)?")
            } else {
                let advice =
                    name != "aps"
                    ? "remove it"
                    : Self.textKeys.contains(member.key)
                        ? "put it inside alert" : "put keys of your own beside aps"
                warn(
                    member.keyOffset,
                    "'\(member.key)' is not a key of \(name), so devices ignore it: \(advice)")
            }
        }
    }

    /// Whether a key that is inside an object of `aps` can be meant as a key of `aps`.
    private func isKeyOfAPS(_ key: String) -> Bool {
        PayloadKey.aps.contains {
            $0.name == key && key != "alert" && !key.hasPrefix("summary-arg")
                && ($0.pushType == nil || $0.pushType == pushType)
        }
    }

    private mutating func check(_ member: PayloadDocument.Member, _ key: PayloadKey) {
        if !key.kinds.contains(member.kind) {
            error(
                member.valueOffset,
                "'\(key.name)' is \(member.kind.description): it must be \(key.kinds.description)"
                    + (isBroadcast ? "" : Self.templateAdvice(member, key)))
        } else if key.kinds == .array, !member.elements.isSubset(of: .string) {
            error(member.valueOffset, "'\(key.name)' must be an array of strings")
        }
        if let only = key.pushType, only != pushType, !isActivityAsAlert {
            warn(
                member.keyOffset,
                "'\(key.name)' is a key of push type \(only.rawValue) "
                    + "only, but the payload is checked as push type \(pushType.rawValue)")
        }
    }

    /// Advice on the type of a template; empty if the value is not from a column.
    private static func templateAdvice(
        _ member: PayloadDocument.Member, _ key: PayloadKey
    ) -> String {
        guard member.isTemplate, member.kind == .string else { return "" }
        if key.kinds.contains(.number) { return ": write {{column:int}}" }
        return key.kinds.contains(.boolean) ? ": write {{column:bool}}" : ""
    }

    /// Names of Apple's keys that do nothing beside `aps`.
    private var namesInside: [String] {
        switch pushType {
        // The app gets the whole payload, and shows what it wants (PushKit, Push to Talk).
        case .voip, .complication, .pushToTalk: []
        // The keys of an accessory are plausible names of a sender's own keys.
        default:
            PayloadKey.aps.filter { $0.pushType != .accessory || pushType == .accessory }
                .map(\.name).filter { $0 != "event" && $0 != "category" }
        }
    }

    /// Checks the keys next to `aps`. They are the sender's own, unless they look like Apple's.
    private mutating func checkOutside() {
        let names = namesInside
        let hasAPS = document.member([], "aps") != nil
        for member in document.members(of: []) where member.key != "aps" {
            if !hasAPS, nearestName(to: member.key, among: ["aps"]) != nil, member.kind == .object {
                error(member.keyOffset, "'\(member.key)' is unknown: did you mean aps?")
            } else if hasAPS, isOnlyAlert(member) {
                error(
                    member.keyOffset,
                    "'alert' is beside aps, where devices ignore it, so they show no text: put it "
                        + "inside aps")
            } else if names.contains(member.key) {
                warn(
                    member.keyOffset,
                    "'\(member.key)' is beside aps, where devices ignore it: put it inside aps")
            } else if member.kind == .null {
                warn(
                    member.valueOffset,
                    "'\(member.key)' is null, which is not a value that Apple lists: remove it")
            }
        }
    }
}

extension PayloadLint {
    // MARK: Values

    /// Checks values against the bounds in Apple's tables.
    mutating func checkValues() {
        for member in document.members(of: ["aps"]) { checkValue(member) }
        for member in document.members(of: ["aps", "sound"]) {
            switch member.key {
            case "volume" where member.kind == .number:
                guard let volume = Double(member.text), !(0...1).contains(volume) else { break }
                error(member.valueOffset, "'volume' must be from 0 to 1")
            case "critical": checkFlag(member)
            default: break
            }
        }
    }

    private mutating func checkValue(_ member: PayloadDocument.Member) {
        switch member.key {
        case "content-available", "mutable-content", "input-push-token": checkFlag(member)
        case "badge" where member.kind == .number:
            guard UInt64(member.text) == nil else { break }
            error(member.valueOffset, "'badge' must be a whole number, 0 or above")
        case "interruption-level" where member.kind == .string:
            let levels = ["passive", "active", "time-sensitive", "critical"]
            checkWord(member, among: levels)
        case "event" where member.kind == .string && pushType == .liveActivity && !isBroadcast:
            checkWord(member, among: ["start", "update", "end"])
        case "relevance-score" where member.kind == .number && pushType != .liveActivity:
            guard let score = Double(member.text), !(0...1).contains(score) else { break }
            error(member.valueOffset, "'relevance-score' must be from 0 to 1")
        case "timestamp" where member.kind == .number, "stale-date" where member.kind == .number,
            "dismissal-date" where member.kind == .number:
            checkTime(member)
        default: break
        }
    }

    /// Checks that a time is in seconds since 1970.
    private mutating func checkTime(_ member: PayloadDocument.Member) {
        guard let time = Double(member.text) else { return }
        let isOfActivity =
            member.key == "timestamp" && pushType == .liveActivity && !member.isTypedTemplate
        if time >= 100_000_000_000 {
            let (unit, factor) =
                time < 100_000_000_000_000
                ? ("milliseconds", "1000") : ("microseconds", "1,000,000")
            let message =
                "'\(member.key)' is in seconds, but this looks like \(unit): divide it by \(factor)"
            // A device shows the state with the newest timestamp, so it would ignore every later
            // update.
            return isOfActivity
                ? error(member.valueOffset, message) : warn(member.valueOffset, message)
        }
        // The other times may be in the past: an activity with such a dismissal-date is removed at
        // once.
        if isOfActivity { checkAge(member, time) }
    }

    /// Checks that a Live Activity's timestamp is the time at which the payload is sent.
    private mutating func checkAge(_ member: PayloadDocument.Member, _ time: Double) {
        if time < Self.earliestTimestamp - Self.referenceDate {
            warn(
                member.valueOffset,
                "'timestamp' is before 2020: write the present time in seconds since 1970")
        } else if time < Self.earliestTimestamp {
            warn(
                member.valueOffset,
                "'timestamp' counts from 1970, but this looks like seconds since 2001: add "
                    + "978307200")
        } else if let now, time + Self.usualAge < Double(now) {
            warn(
                member.valueOffset,
                "'timestamp' is \(universalTime(UInt64(time) * 1000)), more than an hour ago: devices "
                    + "ignore a push that is older than what they show, so write the present time "
                    + "(\(now))")
        } else if let now, time > Double(now) + Self.usualAge {
            // A common cause is local time that was taken for UTC.
            warn(
                member.valueOffset,
                "'timestamp' is \(universalTime(UInt64(time) * 1000)), more than an hour from now: "
                    + "until then, devices ignore each push with an earlier timestamp, so write the "
                    + "present time (\(now))")
        }
    }

    /// Maximum difference of a timestamp from the time at which its payload is checked, in seconds.
    private static let usualAge: Double = 3600

    /// January 1, 2020. Live Activities are newer.
    private static let earliestTimestamp: Double = 1_577_836_800

    /// January 1, 2001, from which Foundation's `Date` counts.
    private static let referenceDate: Double = 978_307_200

    /// Checks a key that must be 1 or absent.
    private mutating func checkFlag(_ member: PayloadDocument.Member) {
        guard member.kind == .number, Double(member.text) != 1 else { return }
        warn(
            member.valueOffset,
            "'\(member.key)' is \(member.text): Apple documents only 1: write 1, or remove the key")
    }

    private mutating func checkWord(_ member: PayloadDocument.Member, among words: [String]) {
        guard !member.isTemplate, !words.contains(member.text) else { return }
        error(
            member.valueOffset,
            "'\(member.key)' must be one of \(words.joined(separator: ", "))")
    }

    // MARK: Push type against content

    /// Checks that the content matches the push type.
    mutating func checkContent() {
        if pushType == .mdm { return checkDeviceManagement() }
        guard let aps = document.member([], "aps") else { return checkMissing() }
        guard aps.kind == .object else {
            return error(aps.valueOffset, "'aps' is \(aps.kind.description): it must be an object")
        }
        switch pushType {
        case .alert: checkAlert(aps)
        case .background: checkBackground(aps)
        case .liveActivity where isBroadcast: checkBroadcast(aps)
        case .liveActivity: checkLiveActivity(aps)
        case .widgets:
            if document.member(["aps"], "content-changed")?.text != "true" {
                error(aps.keyOffset, "a widgets push needs 'content-changed': true in aps: add it")
            }
        case .accessory: checkAccessory(aps)
        default: break
        }
    }

    /// Checks that an accessory push has all required keys, and that `messageIndex` is a decimal
    /// number.
    private mutating func checkAccessory(_ aps: PayloadDocument.Member) {
        for key in PayloadKey.aps where key.pushType == .accessory && !has(key.name) {
            error(aps.keyOffset, "an accessory push needs '\(key.name)' in aps: add it")
        }
        guard let index = document.member(["aps"], "messageIndex"), index.kind == .string,
            !index.isTemplate, UInt64(index.text) == nil
        else { return }
        error(
            index.valueOffset,
            "'messageIndex' must be a whole number in quotes, such as \"42\"")
    }

    func has(_ key: String) -> Bool { document.member(["aps"], key) != nil }

    private mutating func checkAlert(_ aps: PayloadDocument.Member) {
        checkShown(aps)
        if let mutable = document.member(["aps"], "mutable-content"), !has("alert") {
            warn(
                mutable.keyOffset,
                "'mutable-content' does nothing without an alert: service extensions are not run")
        }
        // Push type alert is for "an alert, badge, or sound" (Apple, "Sending notification requests
        // to APNs").
        let effect =
            has("badge") || has("sound") ? "devices show no text" : "devices show nothing"
        if let alert = document.member(["aps"], "alert"), let problem = document.blankAlert {
            warn(alert.keyOffset, "\(problem): \(effect)")
        }
        for prefix in ["", "title-", "subtitle-"] {
            guard let arguments = document.member(["aps", "alert"], "\(prefix)loc-args"),
                document.member(["aps", "alert"], "\(prefix)loc-key") == nil
            else { continue }
            warn(
                arguments.keyOffset,
                "'\(prefix)loc-args' does nothing without '\(prefix)loc-key'")
        }
    }

    /// Checks that a background push has content-available alone (Apple, "Pushing background
    /// updates to your App").
    private mutating func checkBackground(_ aps: PayloadDocument.Member) {
        for key in ["alert", "badge", "sound"] {
            guard let member = document.member(["aps"], key) else { continue }
            error(
                member.keyOffset,
                "a background push can't have '\(key)': remove it, or send with push type alert")
        }
        guard let flag = document.member(["aps"], "content-available") else {
            return error(
                aps.keyOffset, "a background push needs 'content-available': 1 in aps: add it")
        }
        if flag.kind == .number, Double(flag.text) != 1 {
            error(flag.valueOffset, "'content-available' of a background push must be 1")
        }
    }

    private mutating func checkLiveActivity(_ aps: PayloadDocument.Member) {
        var needed = ["event", "timestamp", "content-state"]
        if document.member(["aps"], "event")?.text == "start" {
            needed += ["attributes-type", "attributes", "alert"]
        }
        for key in needed where !has(key) {
            error(aps.keyOffset, "this Live Activity push needs '\(key)' in aps: add it")
        }
        checkActivityAlert()
        checkSubscription()
    }

    /// Checks that a push of type mdm has the PushMagic string and nothing else (Apple, "Sending
    /// MDM commands to a device").
    private mutating func checkDeviceManagement() {
        guard let magic = document.member([], "mdm") else {
            return error(nil, "a push of type mdm is {\"mdm\":\"PushMagic\"}: add 'mdm'")
        }
        if magic.kind != .string {
            error(magic.valueOffset, "'mdm' is \(magic.kind.description): it must be a string")
        }
        if magic.isBlank {
            warn(
                magic.keyOffset,
                "'mdm' is empty: devices ignore a push without the PushMagic of their enrollment")
        }
        for member in document.members(of: []) where member.key != "mdm" {
            error(
                member.keyOffset, "a push of type mdm contains 'mdm' only: remove '\(member.key)'")
        }
    }
}
