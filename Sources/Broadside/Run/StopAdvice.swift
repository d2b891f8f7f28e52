import APNs
import Campaign

/// What to do after a run that ended early: one table, read by the run's last line, by the report and
/// by whatever looks at a ledger later on.
struct StopAdvice: Equatable {
    /// What the advice depends on besides the cause.
    struct Circumstances {
        /// Whether the run received any response.
        var wasAnswered: Bool
        var port: UInt16
        /// `--endpoint` names the server, not an environment of Apple's.
        var hasEndpoint: Bool
    }

    /// A part of a sentence that follows the cause's message and a colon.
    var text: String

    /// nil where nothing is left to be done.
    init?(_ cause: StopCause, _ circumstances: Circumstances) {
        switch cause {
        case .complete: return nil
        case .signal, .control: text = "--resume goes on"
        case .deadline: text = "--resume goes on without it"
        case .gaveUp(let trouble): text = Self.afterGivingUp(trouble, circumstances)
        case .noResponse(_, let last): text = Self.afterGivingUp(last, circumstances)
        case .brokenServer:
            text = "is this APNs? check --endpoint and what is between, then --resume goes on"
        case .refused(let refusal): text = Self.afterRefusal(refusal)
        case .heldBack(_, let refusal): text = refusal.map(Self.afterRefusal) ?? "put it right"
        case .onlyBadTokens:
            text = "check --environment and --topic against the list"
        case .tooManyBadTokens:
            text = "check --environment and where the list comes from, or raise --max-bad-tokens"
        case .tooManyInvalid:
            text =
                "look at ledger export --state invalid, then --resume with a higher --max-invalid"
        case .canaryRefused:
            text =
                "look at ledger export --state rejected --state invalid, or raise "
                + "--canary-max-rejected"
        case .canaryUnanswered: text = "look at ledger export, then --resume"
        case .expiredToken(let isSupplied):
            text = isSupplied ? "put a new one there" : "check the clock of this machine"
        case .signingFailed: text = "check --auth-key"
        case .ledgerFailed: text = "put its disk right, then --resume goes on"
        case .listFailed, .listChanged: text = "then --resume goes on"
        case .failed: text = "--resume goes on"
        }
    }

    private static func afterGivingUp(
        _ trouble: ConnectionTrouble?, _ circumstances: Circumstances
    ) -> String {
        guard !circumstances.wasAnswered else { return "--resume goes on" }
        switch trouble?.kind {
        case .resolve, .connect, .proxy, nil:
            return circumstances.hasEndpoint
                ? "check --endpoint, and that a server listens there"
                : "does a firewall let --port \(circumstances.port) through, or is a --proxy needed?"
        default:
            return "broadside doctor says more"
        }
    }

    /// For relays that want what APNs does not.
    static let lengthRequired =
        "this server insists on a content-length header, which --content-length sends"

    /// How to fix what APNs refuses in every request.
    private static func afterRefusal(_ refusal: StopCause.Refusal) -> String {
        if refusal.status == LengthRequired.status { return lengthRequired }
        guard refusal.isCredential else { return "put the request's headers right" }
        return switch refusal.reason {
        case .topicDisallowed:
            "the credential is not for this --topic; the topic is part of the campaign, so begin a "
                + "new ledger"
        case .invalidProviderToken:
            "check --auth-key, --key-id and --team-id, which must belong together"
        case .badEnvironmentKeyInToken, .badEnvironmentKeyIDInToken, .badCertificateEnvironment:
            "the credential is for the other environment: check --environment"
        case .badCertificate: "put the certificate right"
        default:
            refusal.status == 0
                ? "use one that is valid for this environment, neither expired nor revoked"
                : "put the credential right"
        }
    }
}

extension StopCause {
    /// What happened, in one line.
    var message: String { message(place: nil) }

    /// - Parameter place: Where connections went to.
    func message(place: String?) -> String {
        switch self {
        case .complete: "complete"
        case .signal: "stopped by a signal"
        case .control: "stopped by broadside control"
        case .deadline: "the deadline has passed"
        case .gaveUp(let trouble): Self.gaveUp(trouble.message, place)
        case .noResponse(let seconds, let last):
            Self.gaveUp(
                "no answer for \(seconds) s" + (last.map { " (\($0.message))" } ?? ""), place)
        case .brokenServer(let trouble):
            Self.gaveUp("one connection after the other breaks: \(trouble.message)", place)
        case .refused(let refusal):
            refusal.status == 0
                ? "APNs refuses the credential (\(refusal.text))"
                : "APNs refuses one request after the other: \(refusal.text)"
        case .heldBack(let rows, let refusal):
            "\(rows) rows were refused for the credential's sake, and stay for --resume"
                + (refusal.map { ": \($0.text)" } ?? "")
        case .onlyBadTokens(let refusal):
            "APNs knows none of the first tokens (\(refusal.text))"
        case .tooManyBadTokens: "too many of the last 10,000 answers are BadDeviceToken"
        case .tooManyInvalid(let count, let rows):
            "\(grouped(count)) of the first \(grouped(rows)) rows are invalid"
        case .canaryRefused(let count, let answered):
            "\(count) of the canary's \(answered) rows are refused or invalid"
        case .canaryUnanswered: "no row of the canary was answered"
        case .expiredToken(let isSupplied):
            isSupplied
                ? "the provider token of --auth-token-file has expired"
                : "APNs calls a fresh provider token expired"
        case .signingFailed: "the signing key can't sign any more"
        case .ledgerFailed(let detail): "the ledger can't be written: \(detail)"
        case .listFailed(let detail), .listChanged(let detail), .failed(let detail): detail
        }
    }

    private static func gaveUp(_ what: String, _ place: String?) -> String {
        guard let place else { return what }
        // The trouble of a single address names the place already.
        let prefix = "\(place): "
        return
            "gave up on \(prefix)\(what.hasPrefix(prefix) ? String(what.dropFirst(prefix.count)) : what)"
    }
}
