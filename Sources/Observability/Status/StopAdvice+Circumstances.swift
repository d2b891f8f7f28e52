internal import BroadsideAPNs
package import BroadsideLedgerFormat
package import BroadsideRows
import BroadsideSupport

extension StopAdvice.Circumstances {
    /// Those of a run that ended a while ago, perhaps elsewhere.
    package init(
        _ manifest: Manifest, _ telemetry: Telemetry, _ summary: Summary?, ledger: String
    ) {
        let command = telemetry.command
        let isHere = command.map { $0.directory == RunCommand.workingDirectory } ?? true
        let run = telemetry.runs.last
        self.init(
            wasAnswered: manifest.epochs.last?.stop?.wasAnswered
                ?? run?.points.contains { $0.answers > 0 } ?? true,
            // Version 0.1.0 said nothing of it, but the setting is there only without an endpoint.
            hasEndpoint: telemetry.hasEndpoint
                ?? !telemetry.settings.contains { $0.name == "environment" },
            environment: manifest.identity.environment,
            isBinary: manifest.identity.wireProtocol == CampaignIdentity.binaryProtocol,
            ledger: isHere ? ledger : absolutePath(ledger), command: command,
            openStates: summary?.openStates ?? [])
        hasProxy = command?.value("proxy") != nil
    }
}

extension Summary {
    /// The states of rows that no resume changes unless it is told to.
    package var openStates: [RowState] {
        [.failed, .unknown].filter { counts[$0] > 0 }
    }

    /// That a campaign that is complete reached nobody, and why; nil where it reached somebody.
    package var emptyHandedWarning: String? { allSkippedWarning ?? allRefusedWarning }

    /// That nobody gets the campaign, as all rows that could be sent are left out; nil where somebody
    /// does, or may yet.
    private var allSkippedWarning: String? {
        guard skipped > 0, counts.sent == 0, remaining == 0 else { return nil }
        let counts = SkipReason.allCases.compactMap { skip in
            self.reasons[skip.reason.text].map { (reason: skip, count: $0) }
        }
        let reasons = counts.map { "\(grouped($0.count)) \($0.reason.reason.text)" }
        let advice =
            switch counts.max(by: { $0.count < $1.count })?.reason {
            case .filtered: "does --where name the rows that are meant?"
            case .deadToken: "does --skip-dead name this app's ledgers?"
            case .frequencyCap: "is --cap the right limit?"
            case .suppressed, .duplicate, nil: "is --suppress the right list?"
            }
        return "broadside: warning: no row was left to send: \(grouped(skipped)) of the "
            + "\(grouped(skipped + invalid)) rows are skipped (\(reasons.joined(separator: ", "))), so "
            + "no device gets this campaign: \(advice)"
    }

    /// That APNs refused each row that was sent; nil where it did not. A list that is shorter than
    /// `--abort-after` ends before that guard stops it, and dead tokens alone never do.
    private var allRefusedWarning: String? {
        guard rejected > 0, accepted + failed + unknown == 0, remaining == 0 else { return nil }
        // Those of rows that were not sent are not APNs'.
        let own = Set(
            [
                Reason.malformedToken, .malformedRow, .missingColumn, .badValue, .payloadTooLarge,
                .noPayload,
            ].map(\.text) + SkipReason.allCases.map(\.reason.text))
        let refused = reasons.filter { invalid + skipped == 0 || !own.contains($0.key) }
            .sorted { ($1.value, $0.key) < ($0.value, $1.key) }
        let names = refused.prefix(3).map { "\(grouped($0.value)) \($0.key)" }
        let advice =
            switch refused.first?.key {
            case "BadDeviceToken", "DeviceTokenNotForTopic": "check --environment and --topic"
            case "Unregistered", "ExpiredToken": "is --tokens the right list?"
            default: "check the options and the payload"
            }
        let listed = names.isEmpty ? "" : " (\(names.joined(separator: ", ")))"
        return "broadside: warning: no device got this campaign: APNs refused each of the "
            + "\(grouped(rejected)) rows that were sent\(listed): \(advice)"
    }

    /// How many rows those are; nil where there are none.
    package var openRowsText: String? {
        let texts = openStates.map { state in
            counts[state] == 1
                ? "1 row is \(state.name)" : "\(counts[state]) rows are \(state.name)"
        }
        return texts.isEmpty ? nil : texts.joined(separator: ", ")
    }
}
