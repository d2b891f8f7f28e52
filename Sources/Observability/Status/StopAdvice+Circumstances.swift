internal import BroadsideAPNs
package import BroadsideLedgerFormat
package import BroadsideRows
import BroadsideSupport

extension StopAdvice.Circumstances {
    /// Circumstances of an earlier run, which may have been on another machine.
    package init(
        _ manifest: Manifest, _ telemetry: Telemetry, _ summary: Summary?, ledger: String
    ) {
        let command = telemetry.command
        let isHere = command.map { $0.directory == RunCommand.workingDirectory } ?? true
        let run = telemetry.runs.last
        self.init(
            wasAnswered: manifest.epochs.last?.stop?.wasAnswered
                ?? run?.points.contains { $0.answers > 0 } ?? true,
            // Version 0.1.0 did not record `hasEndpoint`, but it recorded the setting `environment`
            // only if `--endpoint` was not given.
            hasEndpoint: telemetry.hasEndpoint
                ?? !telemetry.settings.contains { $0.name == "environment" },
            environment: manifest.identity.environment,
            isBinary: manifest.identity.wireProtocol == CampaignIdentity.binaryProtocol,
            ledger: isHere ? ledger : absolutePath(ledger), command: command)
        if let summary { take(summary) }
        hasProxy = command?.value("proxy") != nil
        isBroadcast = manifest.identity.isBroadcast
        credential =
            telemetry.credential.flatMap(StopAdvice.CredentialKind.init(rawValue:)) ?? .key
        hasRowTopics = manifest.identity.hasRowTopics
        firstTopic = telemetry.firstTopic
    }

    /// Sets the facts that follow from the row counts.
    package mutating func take(_ summary: Summary) {
        openStates = summary.openStates
        hasDoubt = summary.inDoubt > 0
        hasRemaining = summary.remaining != 0
        reachedCount = summary.reachedCount
        acceptedCount = summary.accepted
        foreignReasons = summary.foreignReasons
        rejectedCount = summary.rejected
    }

    /// Whether the responses to the canary show that its tokens belong to another environment or
    /// app. A few such refusals among many invalid rows do not show it.
    ///
    /// - Parameter count: Number of the canary's rows that are refused or invalid.
    func isForeign(canary count: UInt64) -> Bool {
        !foreignReasons.isEmpty && rejectedCount >= min(count, 5)
    }
}

extension Summary {
    /// The states with rows that a resumed run sends again only on request (`--retry`).
    package var openStates: [RowState] {
        [.failed, .unknown].filter { retryable($0) > 0 }
    }

    /// Number of rows in a state, failed or unknown, that the option `--retry` sends again.
    package func retryable(_ state: RowState) -> UInt64 {
        counts[state] - min(counts[state], unsendable[state])
    }

    /// Number of devices that have or may have got the notification.
    package var reachedCount: UInt64 { accepted + unknown + inDoubt }

    /// Warning that a complete campaign reached no device, or almost none because of wrong tokens or
    /// skipped rows, with the reason; nil for any other campaign.
    package var emptyHandedWarning: String? {
        if rows == 0 { return Self.noRowsWarning }
        return allSkippedWarning ?? allRefusedWarning ?? foreignTokensWarning
            ?? mostSkippedWarning
    }

    /// The text of `emptyHandedWarning`, as a sentence without a period.
    package var emptyHandedText: String? {
        emptyHandedWarning.map { warning in
            let text = warning.dropFirst("broadside: warning: ".count)
            return text.prefix(1).uppercased() + text.dropFirst()
        }
    }

    /// Warning: a shard of a short list has no rows. A list without rows is refused.
    package static let noRowsWarning =
        "broadside: warning: no row of the list is in this part, so no device gets it: check --shard"

    /// Warning: all rows that could be sent were skipped; nil if a row was sent or may still be
    /// sent.
    private var allSkippedWarning: String? {
        guard skipped > 0, counts.sent == 0, remaining == 0 else { return nil }
        return Self.allSkippedWarning(
            skips, invalid: invalid, hasSuppressionList: hasSuppressionList)
    }

    /// Count of the skipped rows for each reason.
    private var skips: [(reason: SkipReason, count: UInt64)] {
        SkipReason.allCases.compactMap { skip in
            reasons[skip.reason.text].map { (reason: skip, count: $0) }
        }
    }

    /// Advice about the cause of most of the skipped rows.
    private static func advice(
        on skips: [(reason: SkipReason, count: UInt64)], hasSuppressionList: Bool
    ) -> String {
        switch skips.max(by: { $0.count < $1.count })?.reason {
        case .suppressed where !hasSuppressionList: "ledger forget erased the devices of these rows"
        case .late: "check --deliver-at and --on"
        case let most: "check \(most?.option ?? "the options")"
        }
    }

    /// Warning: all rows that could be sent are skipped.
    ///
    /// - Parameters:
    ///   - counts: Number of skipped rows for each reason, at least one.
    ///   - invalid: Number of rows that can't be sent.
    ///   - hasSuppressionList: Whether the campaign has a suppression list.
    package static func allSkippedWarning(
        _ counts: [(reason: SkipReason, count: UInt64)], invalid: UInt64, hasSuppressionList: Bool
    ) -> String {
        let skipped = counts.reduce(0) { $0 + $1.count }
        let reasons = counts.map { "\(grouped($0.count)) \($0.reason.reason.text)" }
        return "broadside: warning: no row was left to send: \(grouped(skipped)) of the "
            + "\(grouped(skipped + invalid)) rows are skipped (\(reasons.joined(separator: ", "))), so "
            + "no device gets this campaign: "
            + advice(on: counts, hasSuppressionList: hasSuppressionList)
    }

    /// Warning: APNs refused all rows that were sent; nil if it accepted any. The guard
    /// `--abort-after` does not stop such a run if the list is too short, or if all tokens are
    /// dead.
    private var allRefusedWarning: String? {
        guard rejected > 0, accepted + failed + unknown == 0, remaining == 0 else { return nil }
        // Reasons of rows that were not sent, which are not from APNs.
        let own = Set(
            [
                Reason.malformedToken, .malformedRow, .missingColumn, .badValue, .payloadTooLarge,
                .noPayload, .badZone,
            ].map(\.text) + SkipReason.allCases.map(\.reason.text))
        let refused = reasons.filter { invalid + skipped == 0 || !own.contains($0.key) }
            .sorted { ($1.value, $0.key) < ($0.value, $1.key) }
        let skipsMost = skipped > rejected
        let names = refused.prefix(3).map { "\(grouped($0.value)) \($0.key)" }
        let advice =
            switch refused.first?.key {
            case let reason? where Self.foreignTokenReasons.contains(reason):
                foreignTokenAdvice
            case "Unregistered" where skipsMost, "ExpiredToken" where skipsMost:
                Self.advice(on: skips, hasSuppressionList: hasSuppressionList)
            case "Unregistered", "ExpiredToken":
                rejected + invalid + skipped == 1
                    ? "is it the token that the app reports now?" : "is --tokens the right list?"
            case "Unparsable": "is this APNs? check --endpoint, the options and the payload"
            default: "check the options and the payload"
            }
        let listed = names.isEmpty ? "" : " (\(names.joined(separator: ", ")))"
        let rows = rejected == 1 ? "the only row" : "all \(grouped(rejected)) rows"
        let others = skipsMost ? ", and \(grouped(skipped)) rows were skipped" : ""
        return "broadside: warning: no device got this campaign: APNs refused \(rows) "
            + "that \(rejected == 1 ? "was" : "were") sent\(listed)\(others): \(advice)"
    }

    /// Reasons for tokens of another environment or app, as APNs writes them.
    private static var foreignTokenReasons: [String] { foreignTokens.map(\.text) }

    private static var foreignTokens: [Reason] { [.badDeviceToken, .deviceTokenNotForTopic] }

    /// Reasons for tokens of another environment or app, the most frequent one first, if APNs
    /// accepted no row and refused all for these reasons; otherwise empty.
    fileprivate var foreignReasons: [Reason] {
        let counts = Self.foreignTokens.map { (reason: $0, count: reasons[$0.text] ?? 0) }
            .filter { $0.count > 0 }
        guard accepted == 0, rejected > 0, counts.reduce(0, { $0 + $1.count }) >= rejected else {
            return []
        }
        return counts.sorted { $0.count > $1.count }.map(\.reason)
    }

    /// The certificate of a legacy gateway's client names the topic and the environment.
    private var foreignTokenAdvice: String {
        acceptsBySilence ? "check --certificate and --endpoint" : "check --environment and --topic"
    }

    /// Warning: APNs refused more than 90% of at least 20 rows that were sent, because their tokens
    /// belong to another environment or app; nil otherwise. The first rows may be the operator's
    /// own devices, so that the guard `--abort-after` does not stop such a run.
    private var foreignTokensWarning: String? {
        let foreign = Self.foreignTokenReasons.compactMap { name in
            reasons[name].map { (name: name, count: $0) }
        }
        let refused = foreign.reduce(0) { $0 + $1.count }
        let sent = accepted + rejected + failed + unknown
        guard remaining == 0, sent >= 20, refused * 10 > sent * 9 else { return nil }
        let names = foreign.map { "\(grouped($0.count)) \($0.name)" }.joined(separator: ", ")
        return "broadside: warning: almost no device got this campaign: APNs refused "
            + "\(grouped(refused)) of the \(grouped(sent)) rows that were sent (\(names)): "
            + foreignTokenAdvice
    }

    /// Warning: more than 90% of at least 20 rows were skipped, although the operator did not choose
    /// these rows; nil otherwise.
    private var mostSkippedWarning: String? {
        guard remaining == 0, let share = counts.skippedShare, share > RowCounts.usualSkippedShare
        else { return nil }
        let (skipped, unplanned) = (counts.unplannedSkips, skips.filter { !$0.reason.isPlanned })
        let reasons = unplanned.map { "\(grouped($0.count)) \($0.reason.reason.text)" }
        return "broadside: warning: almost no device got this campaign: \(grouped(skipped)) of the "
            + "\(grouped(skipped + counts.sent)) rows are skipped "
            + "(\(reasons.joined(separator: ", "))): "
            + Self.advice(on: unplanned, hasSuppressionList: hasSuppressionList)
    }

    /// Number of rows per open state, as text; nil if there are none.
    package var openRowsText: String? {
        let texts = openStates.map { state in
            retryable(state) == 1
                ? "1 row is \(state.name)" : "\(retryable(state)) rows are \(state.name)"
        }
        return texts.isEmpty ? nil : texts.joined(separator: ", ")
    }

    /// Number of the failed and unknown rows that the option `--retry` does not send again, as text;
    /// nil if there are none.
    package var unsendableRowsText: String? {
        let texts = [RowState.failed, .unknown].flatMap { state in
            let erased = unsendable.erased[state]
            return [
                (erased, state, "of \(erased == 1 ? "an erased device" : "erased devices")"),
                (unsendable.beyondLimit[state], state, "beyond --limit"),
            ]
        }.filter { $0.0 > 0 }.map { count, state, which in
            "\(count) \(state.name) row\(count == 1 ? "" : "s") \(which)"
        }
        return texts.isEmpty
            ? nil : "--retry does not send again: " + texts.joined(separator: ", ")
    }
}
