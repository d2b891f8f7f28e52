import BroadsideLedgerFormat
import BroadsidePolicy
import Foundation

/// The causes for which a run ends, one for each case of `StopCause`, and for each another advice.
///
/// A case that is added there does not compile here before it has one of its own, and that not before
/// `AdviceCauseTests` has a real run end for it.
enum AdviceCause: String, CaseIterable, Sendable {
    case complete, signal, control, deadline
    case gaveUp = "gave-up"
    case noResponse = "no-response"
    case brokenServer = "broken-server"
    case refused
    case heldBack = "held-back"
    case onlyBadTokens = "only-bad-tokens"
    case allRefused = "all-refused"
    case tooManyBadTokens = "too-many-bad-tokens"
    case topicsRefused = "topics-refused"
    case tooManyInvalid = "too-many-invalid"
    case canaryRefused = "canary-refused"
    case canaryWithoutResponses = "canary-unanswered"
    case expiredToken = "expired-token"
    case expiredSuppliedToken = "expired-token, supplied"
    case signingFailed = "signing-failed"
    case ledgerFailed = "ledger-failed"
    case ledgerGone = "ledger-gone"
    case superseded
    case listFailed = "list-failed"
    case listFaulty = "list-faulty"
    case listChanged = "list-changed"
    case failed

    /// Which one a cause is.
    init(_ cause: StopCause) {
        switch cause {
        case .complete: self = .complete
        case .signal: self = .signal
        case .control, .keyboard: self = .control
        case .deadline: self = .deadline
        case .gaveUp: self = .gaveUp
        case .noResponse: self = .noResponse
        case .brokenServer: self = .brokenServer
        case .refused: self = .refused
        case .heldBack: self = .heldBack
        case .onlyBadTokens: self = .onlyBadTokens
        case .allRefused: self = .allRefused
        case .tooManyBadTokens: self = .tooManyBadTokens
        case .topicsRefused: self = .topicsRefused
        case .tooManyInvalid: self = .tooManyInvalid
        case .canaryRefused: self = .canaryRefused
        case .canaryWithoutResponses: self = .canaryWithoutResponses
        case .expiredToken(isSupplied: false): self = .expiredToken
        case .expiredToken(isSupplied: true): self = .expiredSuppliedToken
        case .signingFailed: self = .signingFailed
        case .ledgerFailed: self = .ledgerFailed
        case .ledgerGone: self = .ledgerGone
        case .superseded: self = .superseded
        case .listFailed: self = .listFailed
        case .listFaulty: self = .listFaulty
        case .listChanged: self = .listChanged
        case .failed: self = .failed
        }
    }

    /// The cause that a ledger keeps of its latest run; nil: none.
    init?(keptIn ledger: String) throws {
        struct Manifest: Decodable {
            struct Epoch: Decodable { var stop: StopRecord? }
            var epochs: [Epoch]
        }
        let text = try Data(contentsOf: URL(filePath: ledger + "/manifest.json"))
        let manifest = try JSONDecoder().decode(Manifest.self, from: text)
        guard let cause = manifest.epochs.last?.stop?.cause else { return nil }
        self.init(cause)
    }
}
