import BroadsideSupport

/// Error of a campaign, a push or a request to a run. The message describes the remedy in terms of
/// this library.
public struct CampaignError: Error, Sendable, CustomStringConvertible {
    /// Kind of the failure.
    public enum Code: String, Sendable, CaseIterable {
        /// A value, or a file that it names, is wrong. Nothing was sent.
        case invalid
        /// The server can't be reached, or this machine lacks something.
        case unavailable
        /// The campaign as a whole was refused: credential, topic, payload or list.
        case refused
        /// A file or a disk failed.
        case storage
        /// Another run uses the ledger.
        case inUse
        /// For a campaign: the run was stopped or has ended; if it left a ledger,
        /// `RunOptions.ledgerUse` can continue it. For a push: the task was cancelled, or the client was closed.
        case stopped
        /// Too many pushes wait for a response.
        case busy
        /// A push was sent and its response was lost: the device may have received the
        /// notification.
        case responseLost
    }

    /// Kind of the failure.
    public let code: Code
    /// Property with the wrong value, such as `Campaign.topic`; nil if no property is wrong.
    public let property: String?
    /// One line: the problem and its remedy.
    public let message: String
    /// The counts and ledger of a run that had begun; nil if no run had begun.
    public internal(set) var result: RunResult?

    /// The message.
    public var description: String { message }

    init(_ code: Code, property: String? = nil, _ message: String) {
        self.code = code
        self.property = property
        self.message = PropertyName.translated(message)
    }

    init(_ error: BroadsideError) {
        let code = Code(exitCode: error.exitCode)
        self.init(
            code,
            property: error.option.map(PropertyName.property(ofOption:))
                ?? (code == .invalid ? PropertyName.property(ofMessage: error.message) : nil),
            error.message)
    }
}

extension CampaignError.Code {
    init(exitCode: Int32) {
        self =
            switch exitCode {
            case ExitCode.badRequest: .invalid
            case ExitCode.refused: .refused
            case ExitCode.disk: .storage
            case ExitCode.inUse: .inUse
            case ExitCode.rowsRemain: .stopped
            default: .unavailable
            }
    }
}
