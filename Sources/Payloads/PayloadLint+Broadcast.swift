import BroadsideAPNs

extension PayloadLint {
    /// The keys of a push that starts a Live Activity.
    private static let startKeys = [
        "attributes", "attributes-type", "input-push-token", "input-push-channel",
    ]

    /// Checks the payload of a broadcast, which updates or ends Live Activities and never starts
    /// one (Apple, "Sending broadcast push notification requests to APNs").
    mutating func checkBroadcast(_ aps: PayloadDocument.Member) {
        checkEvent(aps)
        if !has("timestamp") {
            error(
                aps.keyOffset,
                "this broadcast lacks 'timestamp' in aps: add the time in Unix seconds; devices "
                    + "keep only the newest broadcast")
        }
        for key in Self.startKeys {
            guard let member = document.member(["aps"], key) else { continue }
            error(
                member.keyOffset,
                "'\(key)' belongs to the start of an activity, but a broadcast can't start one: "
                    + "remove it")
        }
        checkActivityAlert()
    }

    /// Checks the alert of a Live Activity: an object that contains its sound, unlike the alert of
    /// other pushes (Apple, "Starting and updating Live Activities with ActivityKit push
    /// notifications").
    mutating func checkActivityAlert() {
        if let alert = document.member(["aps"], "alert"), alert.kind == .string, !alert.isTemplate {
            warn(
                alert.valueOffset,
                "'alert' is a string: for a Live Activity, write an object with 'title' and 'body'")
        }
        if let sound = document.member(["aps"], "sound") {
            warn(
                sound.keyOffset,
                "'sound' of a Live Activity belongs in 'alert': move it there")
        }
    }

    /// Message about a placeholder in the payload of a broadcast.
    static func unfilled(_ column: String) -> String {
        "{{\(column)}} is a placeholder, but a broadcast has no rows to fill it in: write the "
            + "value, or {{{{ for {{"
    }

    private mutating func checkEvent(_ aps: PayloadDocument.Member) {
        guard let event = document.member(["aps"], "event") else {
            return error(
                aps.keyOffset, "this broadcast lacks 'event' in aps: add \"update\" or \"end\"")
        }
        guard event.kind == .string, !event.isTemplate else { return }
        switch event.text {
        case "update":
            guard !has("content-state") else { return }
            error(
                aps.keyOffset, "this update lacks 'content-state' in aps: add the activity's state")
        case "end":
            guard !has("content-state") else { return }
            warn(
                aps.keyOffset,
                "this end event has no 'content-state' in aps: devices keep showing the previous state"
            )
        case "start":
            error(
                event.valueOffset,
                "a broadcast can't start an activity: send the start to device tokens, or start it "
                    + "in the app")
        default: error(event.valueOffset, "'event' of a broadcast must be one of update, end")
        }
    }

    /// Checks the channel to which the start of an activity subscribes it.
    mutating func checkSubscription() {
        guard let channel = document.member(["aps"], "input-push-channel") else { return }
        if channel.kind == .string, !channel.isTemplate,
            !BroadcastChannel.isID(channel.text.utf8)
        {
            error(
                channel.valueOffset,
                "'input-push-channel' is not a channel ID, which is base64: copy it as "
                    + "broadside channel create printed it")
        }
        if let token = document.member(["aps"], "input-push-token") {
            warn(
                token.keyOffset,
                "'input-push-token' and 'input-push-channel' exclude each other: an activity gets "
                    + "updates by its own token or by the channel: keep one")
        }
    }
}

extension PayloadTemplate {
    /// Returns the payload of a broadcast.
    ///
    /// - Throws: The first placeholder, because a broadcast has no rows.
    public func broadcastPayload() throws(PayloadCheck.Problem) -> [UInt8] {
        guard let use = uses.first else { return constantPayload }
        throw PayloadCheck.Problem(
            line: use.line, column: use.character, message: PayloadLint.unfilled(use.column))
    }
}
