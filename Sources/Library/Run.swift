import BroadsideCampaigns
import BroadsideSupport
public import FoundationEssentials

/// A campaign that is being sent. It continues even if no task waits for it; `stop` ends it.
public final class Run: Sendable {
    /// Outcome of each row; it may be read while the run sends.
    public let ledger: CampaignLedger
    private let host: RunHost
    private let state: RunState

    init(ledger: CampaignLedger, _ host: RunHost, _ state: RunState) {
        self.ledger = ledger
        self.host = host
        self.state = state
    }

    /// The progress of the run, about once per second. Each sequence keeps only the latest value,
    /// and ends with the run.
    public var progress: AsyncStream<RunProgress> { state.progress() }

    /// Result of the run. Waits until the run has ended.
    ///
    /// If a waiting task is cancelled, the run stops: it begins no further request, and waits for
    /// the responses to requests in flight. The task then gets the result. A later run can continue
    /// the ledger.
    ///
    /// - Throws: If the campaign was refused or the run could not continue; `CampaignError.result`
    ///   has the counts.
    public var result: RunResult {
        get async throws(CampaignError) {
            // The handler's closure can't throw a typed error.
            let result = await withTaskCancellationHandler {
                await outcome()
            } onCancel: {
                host.requestStop()
            }
            return try result.get()
        }
    }

    private func outcome() async -> Result<RunResult, CampaignError> {
        do throws(CampaignError) {
            return .success(try await state.ended())
        } catch {
            return .failure(error)
        }
    }

    /// Changes the rate.
    ///
    /// - Parameter perSecond: Requests per second; nil: unlimited.
    /// - Throws: If the run has ended or is stopping.
    public func setRate(_ perSecond: Double?) async throws(CampaignError) {
        if let perSecond, !(perSecond > 0 && perSecond <= 1_000_000) {
            throw CampaignError(
                .invalid, property: "perSecond",
                "\(perSecond) is not a rate: pass 0.001 to 1,000,000 requests per second, or nil")
        }
        try await put(.rate(perSecond))
    }

    /// Pauses the run: no request begins until `resume`.
    ///
    /// - Throws: If the run has ended or is stopping.
    public func pause() async throws(CampaignError) { try await put(.pause) }

    /// Ends a pause.
    ///
    /// - Throws: If the run has ended or is stopping.
    public func resume() async throws(CampaignError) { try await put(.resume) }

    /// Stops the run: no further request begins. `result` is available once the responses to
    /// requests in flight have arrived.
    ///
    /// - Throws: If the run has ended or is stopping.
    public func stop() async throws(CampaignError) { try await put(.stop) }

    /// Ends the run without waiting for responses: rows in flight become `unknown`.
    public func stopAtOnce() { host.requestStopAtOnce() }

    private func put(_ request: RunHost.Request) async throws(CampaignError) {
        let refusal = await withCheckedContinuation { continuation in
            host.put(request) { continuation.resume(returning: $0) }
        }
        guard let refusal else { return }
        // A rate was checked before, so a wrong request is one to a run that is stopping.
        if refusal.exitCode == ExitCode.badRequest {
            throw CampaignError(.stopped, refusal.message)
        }
        throw CampaignError(refusal)
    }
}

/// Begins or continues a campaign: `try await Broadside.start(campaign, ledger: directory)`.
///
/// Returns as soon as the run is ready to send its first notification. The run has threads of its
/// own. It handles no signals, prints nothing, asks no questions, and does not change the limits of
/// the process (unless `RunOptions.raisesProcessLimits` is set). A process may have several runs,
/// each with its own ledger.
///
/// - Parameters:
///   - campaign: Notification and its devices.
///   - ledger: Directory that records the outcome of each row.
///   - options: Options of the run.
/// - Throws: If the run could not begin; in this case nothing was sent. If the task is cancelled
///   before the run begins, the error is `CampaignError.Code.stopped`.
public func start(
    _ campaign: Campaign, ledger: URL, options: RunOptions = RunOptions()
) async throws(CampaignError) -> Run {
    let record = CampaignLedger(ledger)
    let state = RunState(ledger: record, options)
    var supply: (@Sendable (RowSpool) async -> Void)?
    if case .sequence(let source) = campaign.tokens.source { supply = source }
    let rows = supply.map { _ in RowSpool(byteLimit: options.tokensByteLimit) }
    let threads = HostedRun(raisesLimits: options.raisesProcessLimits) { state.notice($0) }
    let host = RunHost(threads, observer: state, rows: rows)
    do throws(BroadsideError) {
        var send = try campaign.sendOptions(ledger: ledger, options)
        send.host = host
        let asked = send
        try host.threads.start {
            var failure: BroadsideError?
            do throws(BroadsideError) {
                _ = try CampaignRun.run(asked)
            } catch {
                failure = error
            }
            rows?.cancel()
            host.close()
            state.finish(failure)
        }
    } catch {
        throw CampaignError(error)
    }
    let supplier = supply.flatMap { supply in
        rows.map { rows in Task { await supply(rows) } }
    }
    let failure = await withTaskCancellationHandler { () -> CampaignError? in
        do throws(CampaignError) {
            try await state.started()
            return nil
        } catch {
            return error
        }
    } onCancel: {
        host.requestStop()
        supplier?.cancel()
    }
    supplier?.cancel()
    if let failure {
        throw failure.code == .stopped && !record.exists ? RunState.neverBegan : failure
    }
    return Run(ledger: record, host, state)
}
