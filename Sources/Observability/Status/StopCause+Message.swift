import BroadsideAPNs
package import BroadsidePolicy
import BroadsideSupport

extension StopCause {
    /// Description of the cause, in one line.
    package var message: String { message(endpoint: nil) }

    /// - Parameter endpoint: Endpoint of the connections.
    package func message(endpoint: String?) -> String {
        switch self {
        case .complete: "complete"
        case .signal: "stopped by a signal"
        case .control: "stopped by broadside control"
        case .keyboard: "stopped by the key q"
        case .deadline: "the deadline has passed"
        case .gaveUp(let trouble): Self.gaveUp(trouble, endpoint: endpoint)
        case .noResponse(let seconds, let last):
            Self.gaveUp(
                (seconds == 0
                    ? "no response within --give-up-after" : "no response for \(seconds) s")
                    + (last.map { " (\($0.sentence))" } ?? ""), endpoint)
        case .brokenServer(let trouble):
            Self.gaveUp("one connection after another breaks: \(trouble.sentence)", endpoint)
        case .refused(let refusal) where ResponseClass.isStrangeSuccess(refusal.status):
            "the server responds to one request after another with "
                + "\(refusal.status), which APNs never does: the outcome of these rows "
                + "is unknown"
        case .refused(let refusal) where refusal.isFromOtherServer:
            "the server responds to one request after another with \(refusal.text), which APNs never "
                + "does"
        case .refused(let refusal):
            refusal.status == 0
                ? "APNs refuses the credential (\(refusal.text))"
                : "APNs refuses one request after another: \(refusal.text)"
        case .heldBack(let rows, let refusal?) where refusal.isFromOtherServer:
            (rows == 1
                ? "1 row got a response that APNs never sends, so it remains "
                : "\(grouped(rows)) rows got a response that APNs never sends, so they remain ")
                + "to be sent: \(refusal.text)"
        case .heldBack(let rows, let refusal):
            (rows == 1
                ? "1 row was refused because of the credential, so it remains "
                : "\(grouped(rows)) rows were refused because of the credential, so they remain ")
                + "to be sent"
                + (refusal.map { ": \($0.text)" } ?? "")
        case .allRefused(let rows, let refusal):
            "APNs refused every row of this part that was sent, \(grouped(rows)) in all"
                + (refusal.map { ": \($0.text)" } ?? "")
        case .onlyBadTokens(let refusal):
            "APNs accepts none of the first tokens (\(refusal.text))"
        case .tooManyBadTokens: "too many of the last 10,000 responses are BadDeviceToken"
        case .topicsRefused(let detail, let refusal):
            (refusal?.isFromOtherServer ?? false ? "the server" : "APNs")
                + " refuses some of the topics that rows name, and the rows of other topics were "
                + "sent: \(detail)"
        case .tooManyInvalid(let count, let rows):
            "\(grouped(count)) of the first \(grouped(rows)) rows are invalid"
        case .canaryRefused(let count, let answered):
            "\(count) of the canary's \(answered) rows are refused or invalid"
        case .canaryWithoutResponses: "too few of the canary's rows got a response"
        case .expiredToken(let isSupplied):
            isSupplied
                ? "APNs reports the provider token of --auth-token-command or --auth-token-file as "
                    + "expired"
                : "APNs reports a fresh provider token as expired"
        case .signingFailed: "the signing key can't sign any more"
        case .ledgerFailed(let detail): "the ledger can't be written: \(detail)"
        case .ledgerGone:
            "the ledger, or a segment of it, was removed or moved during the run: nothing more is "
                + "sent, and only the missing files have the outcome of the rows that "
                + "were sent"
        case .superseded:
            "a newer attempt has taken over this ledger, or this attempt's claim was removed: this "
                + "run sends nothing more, and rows that were in flight are in doubt in the ledger"
        case .listFailed(let detail), .listFaulty(let detail), .listChanged(let detail),
            .failed(let detail):
            detail
        }
    }

    private static func gaveUp(_ what: String, _ endpoint: String?) -> String {
        endpoint.map { "gave up on \($0): \(what)" } ?? what
    }

    private static func gaveUp(_ trouble: ConnectionTrouble, endpoint: String?) -> String {
        // If all connections went to one address, the message names it only once.
        guard let endpoint, trouble.peer == endpoint else {
            return gaveUp(trouble.sentence, endpoint)
        }
        return gaveUp(trouble.sentenceWithoutPeer, endpoint)
    }
}

extension ConnectionTrouble {
    /// One line with the peer, the event, and the option whose limit was exceeded.
    var sentence: String {
        peer.map { "\($0): \(sentenceWithoutPeer)" } ?? sentenceWithoutPeer
    }

    fileprivate var sentenceWithoutPeer: String {
        kind == .longWait ? "\(problem), which is longer than --give-up-after" : problem
    }
}
