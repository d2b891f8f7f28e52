import BroadsideAPNs
import BroadsidePolicy
import BroadsideRows
internal import BroadsideSupport

/// Advice about refusals.
extension StopAdvice {
    /// Advice for relays that require a content-length header, which APNs does not require.
    static let lengthRequired =
        "this server requires a content-length header, which --content-length sends"

    /// Adds a step for a refusal that the options cause and that applies to every request. Another
    /// run with the same options would be refused as well.
    mutating func afterRefusal(_ refusal: StopCause.Refusal?) {
        if refusal?.status == LengthRequired.status { return afterRequiredLength() }
        if let refusal, ResponseClass.isStrangeSuccess(refusal.status) {
            export(
                "is this APNs? Fix --endpoint, then \(again) continues; see which rows may have "
                    + "been sent", ["--state", "unknown"])
            return
        }
        if let refusal, refusal.isFromOtherServer { return afterOtherServer() }
        guard let refusal, refusal.isCredential else {
            export(
                "\(refusedOption(refusal)), and begin \(newLedger): rows refused so far "
                    + "stay rejected; see which rows these are", ["--state", "rejected"])
            return
        }
        guard !circumstances.isBinary else {
            add("use a --certificate for this app and this gateway", nil)
            add(
                "these rows remain to be sent: run the same command line with the right "
                    + "--certificate and \(again) to send them", nil)
            return
        }
        switch refusal.reason {
        case .topicDisallowed where circumstances.hasRowTopics: afterRefusedTopics(refusal)
        case .topicDisallowed:
            doctor(
                "the credential is not for this --topic: if the credential is the wrong one, correct it, "
                    + "and \(again) continues; if the topic is wrong, begin \(newLedger) with the right "
                    + "topic, because a resume can't change it; doctor checks both without sending to a "
                    + "device"
            )
        case .badEnvironmentKeyInToken, .badEnvironmentKeyIDInToken, .badCertificateEnvironment:
            afterForeignCredential()
        case .invalidProviderToken:
            doctor("\(invalidToken); doctor checks this without sending to a device")
            afterFixing()
        case .badCertificate where circumstances.credential != .certificate:
            doctor(
                "this run uses no certificate: check --endpoint and any proxy or relay in between; "
                    + "doctor shows more")
            add(
                "these rows remain to be sent: once doctor finds nothing wrong, run the same "
                    + "command line with \(again) to send them", nil)
        case .badCertificate:
            doctor("use a --certificate that is neither expired nor revoked; doctor checks it")
            afterFixing()
        case .missingProviderToken where circumstances.credential != .certificate:
            doctor("\(Self.missingToken); doctor checks this without sending to a device")
            afterFixing()
        case nil where refusal.unknownReason != nil:
            doctor(
                "\(Self.unknownReason); if Apple does not document it, check --endpoint and any "
                    + "proxy in between; doctor shows more")
            afterFixing()
        default:
            doctor(
                "use a credential that is valid for this topic and environment; doctor checks it "
                    + "without sending to a device")
            afterFixing()
        }
    }

    /// Adds a step for a relay that requires a content-length header. `--content-length` is not part
    /// of the campaign, so a resume may add it.
    private mutating func afterRequiredLength() {
        let text = Self.lengthRequired + "; rows refused so far stay rejected"
        // A new ledger would send to the devices that have been reached, too. A night would later
        // continue its own ledger, and so send again what a new ledger has sent.
        guard circumstances.reachedCount > 0 || isNight else {
            return add(
                text + ", so begin a new ledger",
                circumstances.command?.beginningAnew(ledger: circumstances.ledger)
                    .withFlag("content-length"))
        }
        guard circumstances.hasRemaining else {
            return export(
                text + ", so begin \(newLedger); see which rows these are", ["--state", "rejected"])
        }
        resume(text + ", and \(again) sends those that remain") { $0.withFlag("content-length") }
    }

    /// Advice about a reason that this version does not know.
    package static let unknownReason = "look up this reason, which this version does not know"

    /// Adds steps for a server that is not APNs. No row was processed, so all can still be sent.
    private mutating func afterOtherServer() {
        doctor("is this APNs? check --endpoint and any proxy in between; doctor shows more")
        add(
            "these rows remain to be sent: run the same command line with the right "
                + "--endpoint and \(again) to send them", nil)
    }

    /// Advice about MissingProviderToken if requests have a provider token.
    package static let missingToken =
        "the provider token was sent but did not arrive: a proxy or relay in between removes the "
        + "header authorization"

    /// Advice about InvalidProviderToken, which has several causes.
    private var invalidToken: String {
        switch circumstances.credential {
        case .key:
            "check the key, --key-id and --team-id, which must belong together (are the two IDs "
                + "swapped?), and this machine's clock"
        case .suppliedToken:
            "check the program that makes the provider token: its key, key ID and team ID, which must "
                + "belong together, and its machine's clock"
        case .certificate:
            "APNs saw no certificate: check --endpoint and any proxy in between that decrypts TLS"
        }
    }

    mutating func afterRefusedTopics(_ refusal: StopCause.Refusal?) {
        if let refusal, refusal.isFromOtherServer { return afterOtherServer() }
        if let refusal, refusal.isCredential {
            let unknown = refusal.unknownReason == nil ? "" : "\(Self.unknownReason), or "
            export(
                "\(unknown)use a credential that is for these topics; see which rows remain",
                ["--state", "remaining"])
            return resume("once that is fixed, \(again) tries these topics again")
        }
        // Both ways would send the remaining rows, so only one of them may be taken.
        let others =
            circumstances.hasRemaining
            ? "if the topics are right, \(again) sends the rows that remain instead; " : ""
        export(
            "correct the topics of these rows, and send the corrected list with \(newLedger); "
                + "\(others)see which rows were refused", ["--state", "rejected"])
    }

    private mutating func afterFixing() {
        add(
            "these rows remain to be sent: once doctor finds nothing wrong, run the same "
                + "command line with the right credential and \(again) to send them", nil)
    }

    private mutating func afterForeignCredential() {
        let text =
            "the credential is for the other environment: check --environment; a campaign for "
            + "another environment needs \(newLedger)"
        guard let other else {
            doctor(text + "; doctor checks it without sending to a device")
            return
        }
        doctor(text + "; doctor tries the other one") { $0.with("environment", other) }
        add(
            "if the list also belongs to the other environment, start again there",
            circumstances.command?.beginningAnew(ledger: circumstances.ledger)
                .with("environment", other))
    }

    mutating func afterWholePart(_ refusal: StopCause.Refusal?) {
        switch refusal?.reason {
        case nil:
            export(
                "see why, fix it, and begin \(newLedger): rows refused so far stay rejected",
                ["--state", "rejected"])
        case .badDeviceToken, .deviceTokenNotForTopic:
            refusal.map { afterStrangeTokens($0, of: .wholePart) }
        default: afterRefusal(refusal)
        }
    }

    /// Gives the advice of a run without a canary, which the same tokens would stop. Without the
    /// canary's guard, more of them would only be refused.
    mutating func afterForeignCanary() {
        guard let reason = circumstances.foreignReasons.first else {
            preconditionFailure("the canary's tokens were refused for a reason")
        }
        afterStrangeTokens(
            .init(status: 400, reason: reason, isCredential: false), of: .canary)
    }

    /// Rows with tokens of another environment or app. Others remain, except for a whole part.
    enum StrangeRows {
        case firstRows, canary, wholePart
    }

    mutating func afterStrangeTokens(_ refusal: StopCause.Refusal, of rows: StrangeRows) {
        let reasons = circumstances.foreignReasons.map(\.text).joined(separator: ", ")
        let finding = rows == .canary ? "APNs accepted none of them (\(reasons)); " : ""
        // The guard counts per start, because the endpoint and the credential may have changed.
        if rows == .firstRows, circumstances.acceptedCount > 0 {
            export(
                "they are the first of this start, and other rows of this campaign were accepted "
                    + "(\(grouped(circumstances.acceptedCount))): check whether --endpoint or the "
                    + "credential has changed; if not, \(again) continues (with a higher "
                    + "--abort-after if many rows are wrong); see which rows were refused",
                ["--state", "rejected"])
            return
        }
        guard refusal.reason == .badDeviceToken else {
            export(
                "\(finding)these are tokens of another app: check --topic against the list, and begin "
                    + "\(newLedger) with the right topic, because a resume can't change it; see which "
                    + "rows were refused",
                ["--state", "rejected"])
            return
        }
        var text =
            "\(finding)check \(bindingOptions) against the list, and begin \(newLedger) with the right "
            + "ones, because a resume can't change \(circumstances.isBinary ? "the topic" : "them")"
        switch rows {
        // A list in the order of registration begins with the developers' own devices.
        case .firstRows:
            text +=
                "; if they are right, and only the list's first rows are of development builds, "
                + "\(again) continues (with a higher --abort-after if many are)"
        case .canary where circumstances.hasRemaining:
            text +=
                "; if they are right, and only the canary's rows are of development builds, "
                + "\(again) continues with a higher --canary-max-rejected"
        case .canary, .wholePart: break
        }
        guard let other else {
            export(text + "; see which rows were refused", ["--state", "rejected"])
            return
        }
        add(
            text + "; if these are tokens of \(other), begin there",
            circumstances.command?.beginningAnew(ledger: circumstances.ledger)
                .with("environment", other))
    }

    /// The other of Apple's two environments; nil if `--endpoint` names the server.
    private var other: String? {
        guard !circumstances.hasEndpoint else { return nil }
        return circumstances.environment == "production" ? "development" : "production"
    }

    /// Advice on the option that caused a refusal.
    private func refusedOption(_ refusal: StopCause.Refusal?) -> String {
        switch refusal?.reason {
        case .badCollapseID where circumstances.armsHaveCollapseIDs:
            "fix --collapse-id or --arm-collapse-id"
        case .badCollapseID: "fix --collapse-id"
        case .badExpirationDate: "fix --expiration"
        case .badPriority where circumstances.armsHavePriorities:
            "fix --priority or --arm-priority"
        case .badPriority: "fix --priority"
        case .badTopic, .missingTopic: "fix --topic"
        case .invalidPushType: "fix --push-type"
        case .payloadEmpty: "fix --payload"
        case .payloadTooLarge: "make the payload shorter to meet this server's limit"
        case .badPath, .methodNotAllowed: "is this APNs? fix --endpoint"
        case nil where refusal?.status == 413:
            "make the payload shorter to meet this server's limit"
        case nil where refusal?.unknownReason != nil:
            Self.unknownReason
        case nil: "is this APNs? fix --endpoint, or the request's headers"
        default: "fix the request's headers"
        }
    }
}
