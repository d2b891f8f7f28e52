public import BroadsideRows
import BroadsideSupport
public import FoundationEssentials

/// Outcome of each row of a campaign, in the ledger's directory. A run may be writing to it.
public struct CampaignLedger: Sendable {
    /// Directory of the ledger.
    public let url: URL

    /// Creates a reference to a ledger without reading it.
    public init(_ url: URL) { self.url = url }

    /// Whether the directory exists.
    var exists: Bool {
        (try? fileExists(path(url, of: "ledger"))) ?? true
    }

    /// Rows in list order.
    ///
    /// - Parameters:
    ///   - state: State of the rows; nil: all that are settled.
    ///   - reasons: Reasons of the rows, such as `Unregistered`; empty: all.
    public func rows(state: RowState? = nil, reasons: [String] = []) -> LedgerRows {
        LedgerRows(ledger: url, state: state, reasons: reasons)
    }

    /// Reads the whole ledger and counts its rows.
    ///
    /// - Throws: If the directory has no ledger, or can't be read.
    public func counts() async throws(CampaignError) -> CampaignCounts {
        try await OwnThread.run { [url] () throws(BroadsideError) in
            let directory = try path(url, of: "ledger")
            return CampaignCounts(try LedgerReader(path: directory).statistics().counts)
        }.get()
    }
}

/// Runs blocking work on a separate thread, so that a task that waits for a disk blocks no thread
/// of its executor.
enum OwnThread {
    static func run<Value: Sendable>(
        _ work: @escaping @Sendable () throws(BroadsideError) -> Value
    ) async -> Result<Value, CampaignError> {
        await withCheckedContinuation { continuation in
            do throws(BroadsideError) {
                try HostedRun { _ in }.start {
                    do throws(BroadsideError) {
                        continuation.resume(returning: .success(try work()))
                    } catch {
                        continuation.resume(returning: .failure(CampaignError(error)))
                    }
                }
            } catch {
                continuation.resume(returning: .failure(CampaignError(error)))
            }
        }
    }
}
