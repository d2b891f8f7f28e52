import APNs

extension PayloadLint {
    // MARK: Values

    /// Values that Apple's tables bound.
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
        case "event" where member.kind == .string && pushType == .liveActivity:
            checkWord(member, among: ["start", "update", "end"])
        case "relevance-score" where member.kind == .number && pushType != .liveActivity:
            guard let score = Double(member.text), !(0...1).contains(score) else { break }
            error(member.valueOffset, "'relevance-score' must be from 0 to 1")
        case "timestamp" where member.kind == .number, "stale-date" where member.kind == .number,
            "dismissal-date" where member.kind == .number:
            guard let time = Double(member.text), time >= 100_000_000_000 else { break }
            warn(
                member.valueOffset,
                "'\(member.key)' is in seconds, this looks like milliseconds: divide it by 1000")
        default: break
        }
    }

    /// A key that is 1, or left out.
    private mutating func checkFlag(_ member: PayloadDocument.Member) {
        guard member.kind == .number, Double(member.text) != 1 else { return }
        warn(member.valueOffset, "'\(member.key)' is \(member.text): Apple knows it as 1 or absent")
    }

    private mutating func checkWord(_ member: PayloadDocument.Member, among words: [String]) {
        guard !member.isTemplate, !words.contains(member.text) else { return }
        error(
            member.valueOffset,
            "'\(member.key)' must be one of \(words.joined(separator: ", "))")
    }

    // MARK: Push type against content

    /// The push type must tell the truth about the content.
    mutating func checkContent() {
        if pushType == .mdm { return checkDeviceManagement() }
        guard let aps = document.member([], "aps") else {
            switch pushType {
            case .alert, .background, .liveActivity, .widgets:
                let firebase = ["notification", "message", "registration_ids", "data", "to"]
                if let member = document.members(of: []).first(where: {
                    firebase.contains($0.key)
                }) {
                    error(
                        member.keyOffset,
                        "has no 'aps' but '\(member.key)', as Firebase's messages do: APNs needs "
                            + "{\"aps\":{\"alert\":{\"title\":..., \"body\":...}}}")
                } else if document.members.isEmpty {
                    warn(nil, "is empty, which only a Wallet pass update is: add aps")
                } else {
                    error(nil, "has no 'aps': add it, keys of your own go beside it")
                }
            default: warn(nil, "has no 'aps', which Apple asks of every payload: add it")
            }
            return
        }
        guard aps.kind == .object else {
            return error(aps.valueOffset, "'aps' is \(aps.kind.words): it must be an object")
        }
        switch pushType {
        case .alert: checkAlert(aps)
        case .background: checkBackground(aps)
        case .liveActivity: checkLiveActivity(aps)
        case .widgets:
            if document.member(["aps"], "content-changed")?.text != "true" {
                error(aps.keyOffset, "a widgets push has 'content-changed': true in aps: add it")
            }
        default: break
        }
    }

    private func has(_ key: String) -> Bool { document.member(["aps"], key) != nil }

    private mutating func checkAlert(_ aps: PayloadDocument.Member) {
        let isSeen = has("alert") || has("badge") || has("sound")
        if !isSeen {
            if has("content-available") {
                error(
                    aps.keyOffset,
                    "there is nothing to show, which push type alert promises: send it with "
                        + "push type background")
            } else {
                warn(
                    aps.keyOffset, "aps has neither alert, badge nor sound: devices show nothing")
            }
        }
        if let mutable = document.member(["aps"], "mutable-content"), !has("alert") {
            warn(
                mutable.keyOffset,
                "'mutable-content' does nothing without an alert: service extensions are not run")
        }
        if let alert = document.member(["aps"], "alert"), alert.kind == .object {
            let texts = ["title", "subtitle", "body"].flatMap { name in
                [name, name == "body" ? "loc-key" : "\(name)-loc-key"]
            }
            if !texts.contains(where: { document.member(["aps", "alert"], $0) != nil }) {
                warn(alert.keyOffset, "'alert' has no title or body: devices show nothing")
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
    }

    /// Apple, "Pushing background updates to your App": content-available alone.
    private mutating func checkBackground(_ aps: PayloadDocument.Member) {
        for key in ["alert", "badge", "sound"] {
            guard let member = document.member(["aps"], key) else { continue }
            error(
                member.keyOffset,
                "a background push has no '\(key)': remove it, or send with push type alert")
        }
        guard let flag = document.member(["aps"], "content-available") else {
            return error(
                aps.keyOffset, "a background push has 'content-available': 1 in aps: add it")
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
            error(aps.keyOffset, "this Live Activity push lacks '\(key)' in aps: add it")
        }
    }

    /// Apple, "Sending MDM commands to a device": the magic and nothing else.
    private mutating func checkDeviceManagement() {
        guard let magic = document.member([], "mdm") else {
            return error(nil, "a push of type mdm is {\"mdm\":\"PushMagic\"}: add 'mdm'")
        }
        if magic.kind != .string {
            error(magic.valueOffset, "'mdm' is \(magic.kind.words): it must be a string")
        }
        for member in document.members(of: []) where member.key != "mdm" {
            error(member.keyOffset, "a push of type mdm has 'mdm' alone: take '\(member.key)' out")
        }
    }
}
