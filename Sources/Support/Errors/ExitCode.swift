/// The exit codes of every command, which are part of the contract.
package enum ExitCode {
    /// No row is remaining, failed or unknown.
    package static let complete: Int32 = 0
    /// The operation failed.
    package static let failure: Int32 = 1
    /// The request is invalid; nothing was sent.
    package static let badRequest: Int32 = 2
    /// Rows remain; `--resume` continues.
    package static let rowsRemain: Int32 = 3
    /// The campaign as a whole was refused.
    package static let refused: Int32 = 4
    /// A file or disk error.
    package static let disk: Int32 = 5
    /// Finished, but rows are failed or unknown. `--resume` alone does not change that.
    package static let openRows: Int32 = 6
    /// The ledger is in use by another process.
    package static let inUse: Int32 = 7

    /// The description of each code from 0 on, for help and manual.
    package static let meanings = [
        "complete", "failed: APNs cannot be reached, or this machine lacks something",
        "the request is wrong, nothing was sent",
        "rows remain, --resume or night --date DATE continues",
        "the campaign as a whole is wrong (credential, topic, payload or list), stopped early",
        "a file or disk error",
        "finished, but rows are failed or unknown: --retry sends them again, --resume alone does not",
        "another process uses the ledger (try again later), or the ledger is an old copy",
    ]
}
