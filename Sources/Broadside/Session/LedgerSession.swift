internal import BroadsideAPNs
import BroadsideEngine
internal import BroadsideLedgerFormat
import BroadsideLedgers
import BroadsideLists
import BroadsideObservability
internal import BroadsidePolicy
internal import BroadsideRows
import BroadsideSupport
import BroadsideTLS
internal import Glibc

/// This process's use of a campaign's ledger. The campaign may be new or may continue.
final class LedgerSession {
    let directory: LedgerDirectory
    private(set) var manifest: Manifest
    let epoch: UInt32
    /// State left by earlier runs; nil for a new campaign.
    private let index: LedgerIndex?
    /// The counts of the ledger at the start.
    let earlier: LedgerSummary
    /// The counts of rows that this process has already settled in the states of `--retry`. This
    /// run does not reopen these rows.
    private let keptOfProcess: RowCounts
    let isFinishedAlready: Bool
    private let plan: Plan
    /// Limit on row numbers. Only rows with smaller numbers are processed; nil: all.
    let rowsLimit: UInt64?
    /// Warnings about the claim on the ledger. The run continues after them.
    let claimWarnings: [String]
    /// Rows that are settled without being sent.
    let skips: ExclusionIndex?

    var campaign: UInt64 { manifest.campaignNumber }
    /// Campaign number in the headers of the ledger's segments.
    var segmentNumber: UInt64 { manifest.segmentNumber }
    var isResumed: Bool { index != nil }

    /// Begins the campaign, or continues the one that the ledger holds.
    ///
    /// - Parameters:
    ///   - part: Part of the list for a new campaign; nil: not determined yet.
    ///   - directory: Directory of the ledger, locked.
    ///   - zones: Database that must have the time zones of a campaign that continues; nil: they
    ///     are not needed.
    convenience init(
        _ plan: Plan, list: TokenList, part: ListExtent?, skips: ExclusionScan?,
        directory: LedgerDirectory, zones: ZoneDatabase? = nil, now: Now
    ) throws(BroadsideError) {
        if try directory.hasManifest {
            try self.init(
                continuing: plan, list: list, skips: skips, directory: directory, zones: zones,
                now: now)
        } else {
            // The campaign is new, or was killed before its first row: nothing was sent.
            let part = if let part { part } else { try list.part(of: plan.options.shard) }
            try self.init(
                beginning: plan, list: list, part: part, skips: skips, directory: directory,
                now: now)
        }
    }

    private init(
        beginning plan: Plan, list: TokenList, part: ListExtent, skips search: ExclusionScan?,
        directory: LedgerDirectory, now: Now
    ) throws(BroadsideError) {
        self.plan = plan
        self.directory = directory
        index = nil
        earlier = LedgerSummary()
        keptOfProcess = RowCounts()
        isFinishedAlready = false
        (manifest, epoch) = Self.begin(
            plan, identity: Self.identity(plan, list: list, skips: search), list: list, part: part,
            now: now)
        try directory.refuseLostPart(manifest)
        manifest.name = plan.options.name
        manifest.labels = plan.labels
        rowsLimit = plan.rows(of: list, part: part).limit
        manifest.look(upTo: rowsLimit)
        manifest.recordRunShape(
            isInListOrder: plan.options.canary == nil, segmentCount: plan.shape.reactors)
        do throws(BroadsideError) {
            manifest.headerHash = try list.headerHash()
            skips = try Self.skips(search, manifest, directory, list, isNew: true)
            // Skips and parts were determined from the whole list, so they are valid for this list
            // only.
            if search != nil || part != .wholeList {
                manifest.record(
                    listHash: try list.contentHash(), hasSeveralRows: try list.hasSeveralRows())
            }
        } catch {
            // The campaign has begun, though nothing was sent: a resume can continue it.
            if error.exitCode == 3 { try directory.save(manifest) }
            throw error
        }
        // The copy of the manifest is written after the segments are created, before the first
        // row.
        try directory.save(manifest, isCopied: false)
        claimWarnings = try Self.claim(directory, manifest)
    }

    private init(
        continuing plan: Plan, list: TokenList, skips search: ExclusionScan?,
        directory: LedgerDirectory, zones: ZoneDatabase?, now: Now
    ) throws(BroadsideError) {
        self.plan = plan
        self.directory = directory
        let identity = Self.identity(plan, list: list, skips: search)
        var state = try LedgerState(
            plan, list: list, identity: identity, directory: directory, zones: zones)
        // If nothing can remain to be sent, no claim is made.
        claimWarnings = state.sendsNothing ? [] : try Self.claim(directory, state.manifest)
        try directory.syncSegments()
        // A concurrent attempt may have reserved rows before this claim. After the claim, it
        // reserves none.
        if !state.sendsNothing, try !state.isCurrent(in: directory) {
            state = try LedgerState(
                plan, list: list, identity: identity, directory: directory, zones: zones)
        }
        let index = state.index
        self.index = index
        manifest = state.manifest
        rowsLimit = state.rowsLimit
        earlier = state.summary
        keptOfProcess = state.keptOfProcess
        isFinishedAlready = state.isFinished
        manifest.name = plan.options.name ?? manifest.name
        manifest.labels = plan.labels ?? manifest.labels
        // Without a canary this run may reserve any rows.
        if plan.options.canary == nil { manifest.canaryRowCount = nil }
        guard !isFinishedAlready else {
            epoch = 0
            skips = nil
            return
        }
        let lengths = manifest.epochs.last.map { index.segmentLengths(epoch: $0.number) } ?? []
        epoch = manifest.beginEpoch(
            atMilliseconds: now.wallMilliseconds, endpoint: plan.hostAndPort,
            previousLengths: lengths)
        manifest.look(upTo: rowsLimit)
        manifest.recordRunShape(
            isInListOrder: plan.options.canary == nil || manifest.canaryPassed,
            segmentCount: plan.shape.reactors)
        assert(manifest.epochs.map(\.number) == manifest.epochs.map(\.number).sorted())
        // If the list's content is not known, the rows to skip are searched for again. The ledger's
        // own copy of standard input does not change, but an erasure removes its hash.
        let isKnown =
            manifest.listHash != nil || plan.isOfStandardInput && index.chunkCount > 0
        skips = try Self.skips(search, manifest, directory, list, isNew: !isKnown)
        if search != nil, manifest.listHash == nil {
            manifest.record(
                listHash: try list.contentHash(), hasSeveralRows: try list.hasSeveralRows())
        }
        try directory.save(manifest)
    }

    /// Returns the rows to skip. Ignores reports that another ledger recorded after the campaign's
    /// first start.
    private static func skips(
        _ search: ExclusionScan?, _ manifest: Manifest, _ directory: LedgerDirectory,
        _ list: TokenList, isNew: Bool
    ) throws(BroadsideError) -> ExclusionIndex? {
        var search = search
        search?.campaign = RunningCampaign(manifest)
        return try search?.list(in: directory, of: list, isNew: isNew)
    }

    private static func claim(
        _ directory: LedgerDirectory, _ manifest: Manifest
    ) throws(BroadsideError) -> [String] {
        let warnings = try directory.claimAttempt(manifest)
        for warning in warnings { standardErrorLine("broadside: warning: \(warning)") }
        return warnings
    }

    /// Claims the ledger once more at the end of the run. A copy of the ledger that was made during
    /// the run then counts as old. If the claim fails, the recorded verdicts are still valid.
    ///
    /// - Returns: Description of the failure; nil if the claim was made.
    func claimEnd() -> String? {
        do throws(BroadsideError) {
            return try directory.claimAttempt(manifest).first
        } catch {
            return error.message
        }
    }

    /// Whether the ledger has a claim to renew at the end of the run.
    var hasClaim: Bool { !isFinishedAlready && directory.claim != nil }

    /// Makes the checks of a run without creating or locking anything.
    ///
    /// - Returns: Work of earlier runs; nil if no run has begun the campaign.
    static func checkBeforehand(
        _ ledger: String, _ plan: Plan, list: TokenList, skips: ExclusionScan?, rows: RunRows
    ) throws(BroadsideError) -> EarlierRuns? {
        try LedgerDirectory.checkForRun(
            ledger, resumes: plan.options.resumes, begins: plan.options.ledgerUse != .resume)
        // A night creates its folder.
        if plan.options.nightFolder == nil, try !fileExists(ledger) {
            try checkFolder(of: ledger, option: "ledger")
        }
        let directory = LedgerDirectory.unlocked(ledger)
        guard try directory.hasManifest else { return nil }
        let manifest = try directory.readManifest()
        let identity = Self.identity(plan, list: list, skips: skips)
        if let difference = difference(manifest.identity, identity, in: directory, plan.options) {
            throw otherCampaign(directory, difference, plan.options)
        }
        let rows = try rows.rows()
        let earlier = try EarlierRuns(directory, manifest, plan, rows: rows)
        try earlier.check(list, in: directory)
        try earlier.warnOfRowsElsewhere(directory)
        let isOver = manifest.isFinished && !manifest.extendsBeyond(limit: rows.limit)
        if !isOver || !plan.options.retry.isEmpty {
            try directory.refuseOldCopy(manifest)
            try ZoneDatabase().check(zonesOfCampaign: manifest.zones ?? [])
        }
        return earlier
    }

    /// Checks that the list is the campaign's list. Compares size and header. If the ledger has a
    /// hash of the whole content, compares the hash, too. If it has none, compares each part
    /// that was begun.
    static func check(
        _ list: TokenList, _ manifest: Manifest, _ index: LedgerIndex,
        _ directory: LedgerDirectory, _ options: SendOptions
    ) throws(BroadsideError) {
        if let known = manifest.headerHash, try list.headerHash() != known {
            throw otherCampaign(directory, "the list's header differs", options)
        }
        let isSame = try manifest.listHash.map { (known) throws(BroadsideError) in
            try list.contentHash() == known
        }
        if isSame != true {
            var reader = ListPartReader(list: list)
            do throws(BroadsideError) {
                try reader.check(
                    index, isFinished: manifest.isFinished && manifest.rowsLimit == nil)
            } catch {
                guard options.nightFolder != nil, error.exitCode == ExitCode.badRequest,
                    !error.isDamage, !error.isFaultyList
                else { throw error }
                throw otherCampaign(directory, "the list's content differs", options)
            }
        }
        if isSame == false {
            throw otherCampaign(directory, "the list's content differs", options)
        }
        // The size of a compressed list is known only at its end.
        guard let known = manifest.identity.listByteCount, list.byteCount == nil else { return }
        let found = try list.bytes.measure()
        if found != known {
            throw otherCampaign(
                directory, "the list's size in bytes was \(known), now it is \(found)", options)
        }
    }

    /// Warns if earlier runs sent rows to another server that is not Apple's.
    func warnOfRowsElsewhere() throws(BroadsideError) {
        guard let index else { return }
        try RowsElsewhere.warn(index, manifest, directory, plan.options)
    }

    /// Verdicts of earlier runs that this run does not reopen. Together with this run's counts,
    /// they are the counts of the campaign.
    var kept: RowCounts { earlier.kept(reopening: plan.options.retry) + keptOfProcess }

    /// Whether waves that have begun may have unsettled rows; false if all rows of these waves are
    /// settled.
    func mayHaveDueRows(_ waves: WavePlan) -> Bool {
        earlier.count(.inDoubt) > 0
            || waves.mayHaveLeft(
                at: Clock.now().wallMilliseconds, rows: manifest.rowCount(with: earlier),
                settled: kept.settled)
    }

    /// Whether rows of any wave may be unsettled; false if the number of rows is known, and all are
    /// settled. A run that was killed while it waited may have left such a ledger.
    var mayHaveRows: Bool {
        earlier.count(.inDoubt) > 0
            || manifest.rowCount(with: earlier).map { $0 > kept.settled } ?? true
    }

    /// Rows that earlier runs read and that this run does not read again, for `--max-invalid`.
    var rowsRead: InvalidRowsGuard { rowsRead(more: 0) }

    /// Like `rowsRead`, with further rows that were read and are valid.
    func rowsRead(more: UInt64) -> InvalidRowsGuard {
        Self.rowsRead(earlier, plan, more: keptOfProcess.settled + more)
    }

    static func rowsRead(
        _ earlier: LedgerSummary, _ plan: Plan, more: UInt64 = 0
    ) -> InvalidRowsGuard {
        InvalidRowsGuard(
            maximumPercent: plan.options.maxInvalid,
            rows: earlier.kept(reopening: plan.options.retry).settled + more,
            invalid: earlier.count(.invalid) - (plan.isOfStandardInput ? earlier.erasedCount : 0))
    }

    static func begin(
        _ plan: Plan, identity: CampaignIdentity, list: TokenList, part: ListExtent, now: Now
    ) -> (Manifest, UInt32) {
        let number = plan.options.campaignID ?? randomBytes(8).reduce(0) { $0 << 8 | UInt64($1) }
        var manifest = Manifest(
            campaign: number, identity: identity,
            firstStartedAtMilliseconds: now.wallMilliseconds,
            expirationSeconds: plan.options.expiration?.unixSeconds(
                startUnixSeconds: now.wallMilliseconds / 1000),
            listPath: list.path)
        manifest.canaryRowCount = plan.options.canary.map { UInt64($0) }
        manifest.part = part == .wholeList ? nil : part
        let epoch = manifest.beginEpoch(
            atMilliseconds: now.wallMilliseconds, endpoint: plan.hostAndPort)
        return (manifest, epoch)
    }

    static func identity(
        _ plan: Plan, list: TokenList, skips: ExclusionScan?
    ) -> CampaignIdentity {
        var identity = CampaignIdentity(
            listByteCount: list.byteCount, listFormat: list.format.rawValue,
            columns: list.layout.names,
            payloadSHA256: plan.payloads.digest, topic: plan.topicText,
            pushType: plan.headers.pushType.rawValue,
            priority: Int(plan.headers.priority.rawValue),
            expiration: plan.options.expiration?.text,
            collapseID: plan.options.collapseID,
            environment: plan.options.tokenEnvironment.rawValue,
            shard: plan.options.shard?.identity(of: list), part: plan.options.part,
            campaignID: plan.options.campaignID.map { hexadecimal($0) },
            suppressSHA256: skips?.suppressSHA256,
            duplicates: plan.options.skipsDuplicates ? "skip" : nil,
            earlier: plan.options.earlierRules, delivery: plan.options.delivery.rules,
            keepTokens: plan.options.keepsTokens ? nil : CampaignIdentity.noTokens,
            wireProtocol: plan.options.wireProtocol == .binary
                ? CampaignIdentity.binaryProtocol : nil)
        plan.options.rules.record(in: &identity)
        identity.split = plan.options.split
        return identity
    }

    /// Rows of the list that this run covers.
    var selection: ListSelection {
        ListSelection(rows: manifest.rows, skips: skips, erased: index?.erasedRows)
    }

    /// Description of the work that earlier runs left; nil if this is the first run.
    func resumePlan() -> ResumePlan? {
        guard let index else { return nil }
        return ResumePlan(
            index: index, lostRows: plan.options.onLost, reopens: plan.options.retry,
            reopenedSince: plan.reopenedSince)
    }

    /// Returns the number of rows of each zone that this run has yet to send; nil if this is the
    /// first run, which has to send all of them.
    func rowsLeft(of zones: RowZones) throws(BroadsideError) -> [UInt64]? {
        guard let left = resumePlan() else { return nil }
        return try zones.rowCounts(left)
    }

    /// Records the time zones of the campaign's rows in the manifest, before the first of these rows
    /// is reserved. A resume on a system that lacks one of them is then refused.
    func record(zones names: [String]) throws(BroadsideError) {
        assert(!isFinishedAlready, "a finished campaign has no rows to send")
        guard manifest.record(zones: names) else { return }
        try directory.save(manifest, isCopied: isResumed)
    }

    /// Records in the manifest that every segment of this run is on disk.
    func recordCreatedSegments() throws(BroadsideError) {
        assert(manifest.epochs.last?.number == epoch, "the run that continues was begun")
        manifest.recordCreatedSegments()
        try directory.save(manifest)
    }

    // MARK: Canary

    /// Canary of this run; nil if none is requested, or if a canary of this campaign has already
    /// passed.
    func canaryGate() -> CanaryGate? {
        guard let rows = plan.options.canary, !manifest.canaryPassed else { return nil }
        // If only canary rows were reserved so far, their responses count for this canary.
        let isSame = manifest.canaryRowCount != nil
        let rejected = earlier.count(.rejected)
        let invalid = plan.options.delivery.isUsed ? 0 : earlier.count(.invalid)
        assert(earlier.goneCount <= rejected, "a 410 is a rejection")
        return CanaryGate(
            rows: UInt64(rows), maximumRefusedPercent: plan.options.canaryMaxRejected,
            answered: isSame ? earlier.count(.accepted) + rejected + invalid : 0,
            refused: isSame ? rejected - earlier.goneCount + invalid : 0)
    }

    /// Records in the manifest that the canary has passed.
    func recordPassedCanary() throws(BroadsideError) {
        guard !manifest.canaryPassed else { return }
        assert(plan.options.canary != nil, "only a run with a canary has one that passes")
        manifest.canaryPassed = true
        try directory.save(manifest)
    }

    // MARK: End

    /// Records the end of this run in the manifest.
    func end(
        lengths: [SegmentLength], rows: UInt64?, listByteCount: UInt64?, listHash: String?,
        isFinished: Bool,
        statistics: RunStatistics, stop: StopRecord?
    ) throws(BroadsideError) {
        assert(
            !isFinishedAlready && manifest.epochs.last?.number == epoch,
            "a run that ends has begun")
        manifest.counters.retries += statistics.retries
        manifest.counters.add(shortened: statistics.shortened)
        manifest.counters.reconnects += statistics.reconnects
        manifest.counters.connections += statistics.connectionsOpened
        if let rows { manifest.rowCount = rows }
        if let listByteCount { manifest.identity.listByteCount = listByteCount }
        if let listHash {
            manifest.record(listHash: listHash, hasSeveralRows: manifest.rowCount ?? 0 > 1)
        }
        manifest.endEpoch(lengths: lengths, isFinished: isFinished, stop: stop)
        try directory.save(manifest)
    }

    /// Whether the run before this one ended because its deadline had passed.
    var wasEndedByDeadline: Bool {
        assert(manifest.epochs.last?.number == epoch, "this run has begun")
        return manifest.epochs.dropLast().last?.stop?.cause == .deadline
    }

    /// Number of rows in the campaign, if all rows before `end` were read; nil if unknown.
    func rowCount(with ledger: LedgerSummary, upTo end: UInt64?) -> UInt64? {
        end.flatMap { manifest.rowCount(with: ledger, upTo: $0) }
    }

    /// Counts the rows of the ledger again.
    ///
    /// - Parameter ofOwnRuns: Whether to ignore segments of runs that this process does not know.
    func count(ofOwnRuns: Bool = false) throws(BroadsideError) -> LedgerSummary {
        try read(ofOwnRuns: ofOwnRuns) { try LedgerSummary($0) }
    }

    /// Times at which earlier runs settled rows.
    ///
    /// - Parameters:
    ///   - epochs: All runs of the ledger.
    ///   - runs: Numbers of the runs whose rows are included.
    /// - Returns: nil if the campaign is new or its ledger can't be read.
    func earlierCourse(
        _ epochs: [Manifest.Epoch], of runs: Set<UInt32>
    ) -> SettlementTimeline? {
        guard let index else { return nil }
        var course = SettlementTimeline(epochs: epochs, only: runs)
        do {
            try course.add(index)
        } catch {
            return nil
        }
        return course
    }

    /// The apns-unique-id of the campaign's first row; nil if none was recorded.
    var uniqueIDOfFirstRow: String? {
        let bytes = try? read { (index) -> [UInt8]? in
            guard index.chunkCount > 0 else { return nil }
            var verdicts = ChunkVerdicts(of: index)
            try verdicts.load(chunk: 0)
            assert(!verdicts.rows.isEmpty, "a chunk has rows")
            return verdicts.uniqueID(ofRow: 0)
        }
        return bytes.map { String(decoding: $0, as: UTF8.self) }
    }

    /// Reads the current state of the ledger.
    private func read<Value>(
        ofOwnRuns: Bool = false, _ body: (LedgerIndex) throws -> Value
    ) throws(BroadsideError) -> Value {
        do {
            let known = Set(manifest.epochs.map(\.number))
            let segments = try directory.segments().filter {
                !ofOwnRuns || known.contains($0.epoch)
            }
            return try body(LedgerIndex(segments: segments, manifest: manifest))
        } catch let error as LedgerError {
            throw BroadsideError(option: "ledger", "\(directory.path): \(error)", exitCode: 5)
        } catch {
            throw error as? BroadsideError ?? BroadsideError("\(error)", exitCode: 5)
        }
    }
}
