import BroadsideAPNs
import BroadsideSupport

extension PayloadLint {
    /// The texts of an alert, which are often written beside it.
    static let textKeys = ["title", "subtitle", "body"]

    /// The keys of which a push of type alert has at least one. The type is for "an alert, badge, or
    /// sound" (Apple, "Sending notification requests to APNs").
    private static let shownKeys = ["alert", "badge", "sound"]

    /// Checks that a push of type alert has something that devices show.
    ///
    /// An empty `aps` is only a warning, because it is right for a Wallet pass update.
    mutating func checkShown(_ aps: PayloadDocument.Member) {
        if isActivityAsAlert {
            return error(
                aps.keyOffset,
                "'event' and 'content-state' are for a Live Activity, which a push of type alert "
                    + "can't change: send it with push type liveactivity")
        }
        let keys = document.members(of: ["aps"]).map(\.key)
        if Self.shownKeys.contains(where: keys.contains) {
            guard !has("alert"), keys.contains(where: Self.textKeys.contains) else { return }
            return error(
                aps.keyOffset,
                "devices show no text, because title and body belong in aps.alert: write "
                    + "{\"aps\":{\"alert\":{\"title\":..., \"body\":...}}}")
        }
        // A misspelled key is an error already, which names the right key.
        if keys.isEmpty || keys.contains(where: { Self.isMisspelled($0) }) {
            return warn(
                aps.keyOffset, "aps has neither alert, badge nor sound: devices show nothing")
        }
        if keys.contains(where: { Self.textKeys.contains($0) }) {
            return error(
                aps.keyOffset,
                "there is nothing to show, because title and body belong in aps.alert: write "
                    + "{\"aps\":{\"alert\":{\"title\":..., \"body\":...}}}")
        }
        let advice =
            typeOfKeys(keys).map { "send it with push type \($0.rawValue)" }
            ?? "add an alert, badge or sound"
        error(
            aps.keyOffset,
            "there is nothing to show, but push type alert must show something: \(advice)")
    }

    /// Whether the payload is that of a Live Activity, but the push type is alert. Devices would show
    /// its alert, and no activity would change.
    var isActivityAsAlert: Bool { pushType == .alert && has("event") && has("content-state") }

    /// Whether a member beside `aps` is the text of a push that shows no other.
    ///
    /// With `content-available`, the app runs and may show the text itself. A value of another form
    /// than an alert's is the sender's own.
    func isOnlyAlert(_ member: PayloadDocument.Member) -> Bool {
        guard pushType == .alert, member.key == "alert", !has("alert"), !has("content-available")
        else { return false }
        guard member.kind == .object else { return member.kind == .string }
        return (Self.textKeys + ["loc-key", "title-loc-key"])
            .contains { document.member(["alert"], $0) != nil }
    }

    /// Whether a key of `aps` is probably meant as one of the keys that show something.
    private static func isMisspelled(_ key: String) -> Bool {
        let names = PayloadKey.aps.map(\.name)
        guard !names.contains(key), let nearest = nearestName(to: key, among: names) else {
            return false
        }
        return shownKeys.contains(nearest)
    }

    /// The push type to which the keys of `aps` belong; nil if they show none.
    private func typeOfKeys(_ keys: [String]) -> PushType? {
        for key in PayloadKey.aps where keys.contains(key.name) {
            if let type = key.pushType { return type }
        }
        return keys.contains("content-available") ? .background : nil
    }
}

extension PayloadDocument {
    /// Problem of an alert without text; nil if the alert has text, or if there is no alert.
    var blankAlert: String? {
        guard let alert = member(["aps"], "alert") else { return nil }
        if alert.isBlank { return "'alert' is empty" }
        guard alert.kind == .object else { return nil }
        let texts = PayloadLint.textKeys.flatMap { name in
            [name, name == "body" ? "loc-key" : "\(name)-loc-key"]
        }.compactMap { member(["aps", "alert"], $0) }
        if texts.isEmpty { return "'alert' has no title or body" }
        return texts.allSatisfy(\.isBlank) ? "'alert' has only empty texts" : nil
    }
}

extension PayloadDocument.Member {
    /// Whether a text is empty or blank. A text that rows provide counts as neither.
    var isBlank: Bool { kind == .string && !isTemplate && text.allSatisfy(\.isWhitespace) }
}
