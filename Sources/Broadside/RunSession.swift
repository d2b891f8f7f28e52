import APNs
import Campaign
internal import Glibc
import TLS

/// A campaign and its ledger, taken up by this process: begun, or gone on with.
final class RunSession {
    let directory: LedgerDirectory
    private(set) var manifest: Manifest
    let epoch: UInt32
    /// What earlier runs left; nil for a new campaign.
    private let index: LedgerIndex?
    /// What the ledger said at the start.
    let earlier: LedgerSummary
    let isFinishedAlready: Bool
    private let plan: Plan

    var campaign: UInt64 { manifest.campaignNumber }
    var isResumed: Bool { index != nil }

    init(_ plan: Plan, list: TokenList, now: Now) throws(BroadsideError) {
        self.plan = plan
        guard let path = plan.options.ledger else {
            preconditionFailure("a run has a ledger")
        }
        let identity = try Self.identity(plan, list: list)
        if plan.options.resumes, LedgerDirectory.exists(path) {
            guard try LedgerDirectory.isBegun(path) else {
                throw .request(
                    "--ledger \(path) holds no manifest.json, but other files: it is no ledger, so "
                        + "name another directory")
            }
            directory = try LedgerDirectory.openLocked(path)
        } else {
            directory = try LedgerDirectory.create(path)
        }
        guard directory.hasManifest else {
            // New, or killed before its first row: nothing was sent.
            index = nil
            earlier = LedgerSummary()
            isFinishedAlready = false
            (manifest, epoch) = Self.begin(plan, identity: identity, list: list, now: now)
            try directory.save(manifest)
            return
        }
        manifest = try directory.readManifest()
        if let difference = manifest.identity.firstDifference(from: identity) {
            throw .request(
                "--ledger \(path) is another campaign's: \(difference): name another ledger, or "
                    + "resume with what it was begun with")
        }
        try directory.syncSegments()
        let segments = try directory.segments()
        do {
            let index = try LedgerIndex(segments: segments, manifest: manifest)
            self.index = index
            earlier = try LedgerSummary(index)
            isFinishedAlready =
                manifest.isFinished && !Self.reopensAny(plan, earlier)
                && !manifest.looksFurther(limit: plan.options.limit)
            if !isFinishedAlready {
                var reader = try ListPartReader(list: list)
                try reader.check(index)
            }
            let lengths = manifest.epochs.last.map { index.segmentLengths(epoch: $0.number) } ?? []
            epoch =
                isFinishedAlready
                ? 0
                : manifest.beginEpoch(
                    atMilliseconds: now.wallMilliseconds, previousLengths: lengths)
        } catch let error as BroadsideError {
            throw error
        } catch {
            throw BroadsideError("--ledger \(path): \(error)", exitCode: 5)
        }
        // Without a canary this run reserves any rows.
        if plan.options.canary == nil { manifest.canaryRowCount = nil }
        if !isFinishedAlready { try directory.save(manifest) }
    }

    private static func reopensAny(_ plan: Plan, _ summary: LedgerSummary) -> Bool {
        plan.options.retry.contains { name in
            RowState(name: name).map { summary.count($0) > 0 } ?? false
        }
    }

    private static func begin(
        _ plan: Plan, identity: CampaignIdentity, list: TokenList, now: Now
    ) -> (Manifest, UInt32) {
        let number = randomBytes(8).reduce(0) { $0 << 8 | UInt64($1) }
        var manifest = Manifest(
            campaign: number, identity: identity,
            firstStartedAtMilliseconds: now.wallMilliseconds,
            expirationSeconds: plan.options.expiration?.unixSeconds(
                startUnixSeconds: now.wallMilliseconds / 1000),
            listPath: list.path)
        manifest.canaryRowCount = plan.options.canary.map { UInt64($0) }
        let epoch = manifest.beginEpoch(atMilliseconds: now.wallMilliseconds)
        return (manifest, epoch)
    }

    private static func identity(
        _ plan: Plan, list: TokenList
    ) throws(BroadsideError) -> CampaignIdentity {
        let expiration: String? =
            switch plan.options.expiration {
            case .at(let seconds): "\(seconds)"
            case .after(let seconds): "+\(seconds)s"
            case nil: nil
            }
        return CampaignIdentity(
            listByteCount: list.byteCount, listFormat: list.format.rawValue,
            columns: list.layout.names,
            payloadSHA256: hexadecimal(sha256(plan.payload)), topic: plan.headers.topic,
            pushType: plan.headers.pushType.rawValue,
            priority: Int(plan.headers.priority.rawValue), expiration: expiration,
            collapseID: plan.headers.collapseID,
            environment: plan.options.environment.rawValue, shard: nil, suppressSHA256: nil)
    }

    /// The work that earlier runs left; nil where this is the first.
    func resumePlan() -> ResumePlan? {
        guard let index else { return nil }
        var reopens: ReopenedStates = []
        if plan.options.retry.contains("failed") { reopens.insert(.failed) }
        if plan.options.retry.contains("unknown") { reopens.insert(.unknown) }
        return ResumePlan(
            index: index, lostRows: plan.options.onLost == .record ? .record : .resend,
            reopens: reopens)
    }

    // MARK: Canary

    /// The canary of this run; nil where none is asked for, or one has passed already.
    func canaryGate() -> CanaryGate? {
        guard let rows = plan.options.canary, !manifest.canaryPassed else { return nil }
        // Where no others were reserved than rows of a canary, their answers count for it.
        let isSame = manifest.canaryRowCount != nil
        let rejected = earlier.count(.rejected)
        return CanaryGate(
            rows: UInt64(rows), maximumRefusedPercent: plan.options.canaryMaxRejected,
            answered: isSame ? earlier.count(.accepted) + rejected : 0,
            refused: isSame ? rejected - earlier.goneCount : 0)
    }

    /// Notes in the manifest that the canary has passed.
    func noteCanaryPassed() throws(BroadsideError) {
        guard !manifest.canaryPassed else { return }
        manifest.canaryPassed = true
        try directory.save(manifest)
    }

    // MARK: End

    /// Notes in the manifest what this run left.
    func end(
        lengths: [SegmentLength], rows: UInt64?, isFinished: Bool, statistics: RunStatistics
    ) throws(BroadsideError) {
        manifest.counters.retries += statistics.retries
        manifest.counters.reconnects += statistics.reconnects
        manifest.counters.connections += statistics.connectionsOpened
        if let rows { manifest.rowCount = rows }
        manifest.rowsLimit = plan.options.limit
        manifest.endEpoch(lengths: lengths, isFinished: isFinished)
        try directory.save(manifest)
    }

    /// The ledger as it stands now, counted anew.
    func count() throws(BroadsideError) -> LedgerSummary {
        do {
            let index = try LedgerIndex(
                segments: try directory.segments(), manifest: manifest)
            return try LedgerSummary(index)
        } catch let error as LedgerError {
            throw BroadsideError("--ledger \(directory.path): \(error)", exitCode: 5)
        } catch {
            throw error as? BroadsideError ?? BroadsideError("\(error)", exitCode: 5)
        }
    }

    /// A campaign with nothing left to do: tells so.
    func reportFinished() throws(BroadsideError) -> Int32 {
        var summary = Summary(campaign: campaign, outcome: .complete)
        summary.take(earlier, rows: manifest.rowCount)
        summary.retries = manifest.counters.retries
        summary.reconnects = manifest.counters.reconnects
        try summary.write(to: plan.options)
        return earlier.count(.failed) + earlier.count(.unknown) == 0 ? 0 : 3
    }
}
