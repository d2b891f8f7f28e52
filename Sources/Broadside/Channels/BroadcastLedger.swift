internal import BroadsideAPNs
internal import BroadsideLedgerFormat
import BroadsideLedgers
internal import BroadsideRows
import BroadsideSupport
import BroadsideTLS
internal import Glibc

/// Ledger of a broadcast: a campaign of one row.
///
///     open -> remaining --- begin, reserve ---> in doubt --- settle ---> accepted, rejected, failed,
///              ^                                   |                     unknown
///              +------------- release -------------+
///
/// The row is reserved durably before its request is sent. If a later start finds the row in doubt,
/// the request may have been processed. From then on, only `accepted` and `rejected` end the doubt:
/// in place of `remaining` or `failed`, the row becomes unknown again.
///
/// A run of the ledger can't reserve a row twice, so after a release, a start begins another run.
final class BroadcastLedger {
    /// Outcome of the broadcast, as recorded.
    struct Outcome {
        var state = RowState.remaining
        var status: UInt16 = 0
        var reason = ""
        var attempts: UInt16 = 0
        var settledAtMilliseconds: UInt64 = 0
    }

    private let directory: LedgerDirectory
    private var manifest: Manifest
    private var writer: LedgerWriter?
    private var descriptor: Int32 = -1
    private var epoch: UInt32 = 0
    /// Lengths of the previous run's segments. The manifest keeps them if that run did not record
    /// them itself.
    private var previousLengths: [SegmentLength] = []
    private var isNew: Bool
    /// Outcome so far. Its attempts are the requests that the ledger knows of and those that this
    /// start sent; if the row was reopened, only the latter.
    private(set) var outcome = Outcome()
    /// Whether an earlier start may have sent the broadcast.
    private(set) var mayHaveBeenSent = false
    /// Response that refused this run's credential, or that another server sent; nil if there was
    /// none. The ledger does not record this response.
    var refusal: BlockingConnection.Response?
    /// Cause for which this start sends no further request, although another one might succeed;
    /// nil if there is none.
    var postponement: String?

    /// Opens the ledger of an earlier start, or creates a ledger.
    ///
    /// - Parameters:
    ///   - identity: Identity of the broadcast. A ledger of another broadcast is an error with exit
    ///     code 2.
    ///   - expiration: Expiration of a new broadcast. Later starts use the expiration that the
    ///     first start recorded.
    init(
        path: String, identity: CampaignIdentity, expiration: Expiration, name: String?, now: Now
    ) throws(BroadsideError) {
        directory = try LedgerDirectory.openForRun(path, resumes: true)
        isNew = try !directory.hasManifest
        guard !isNew else {
            let number = randomBytes(8).reduce(0) { $0 << 8 | UInt64($1) }
            manifest = Manifest(
                campaign: number, identity: identity,
                firstStartedAtMilliseconds: now.wallMilliseconds,
                expirationSeconds: expiration.unixSeconds(
                    startUnixSeconds: now.wallMilliseconds / 1000),
                listPath: nil)
            manifest.name = name
            manifest.rowCount = 1
            return
        }
        manifest = try directory.readManifest()
        try Self.check(manifest, path, identity)
        if let name { manifest.name = name }
        try warnOfCopies()
        try directory.syncSegments()
        let segments = try directory.segments()
        do throws(LedgerError) {
            let index = try LedgerIndex(segments: segments, manifest: manifest)
            previousLengths =
                manifest.epochs.last.map { index.segmentLengths(epoch: $0.number) } ?? []
            outcome = try Self.outcome(in: index)
        } catch {
            throw LedgerReader.unreadable(error, directory)
        }
    }

    deinit { if descriptor >= 0 { close(descriptor) } }

    /// What earlier starts recorded.
    struct Earlier {
        var state: RowState
        var expirationSeconds: UInt64
        /// Host and port of the server of the latest request; nil if it is not known.
        var server: String?
    }

    /// Checks that a start may use a path for its ledger, without changing anything.
    ///
    /// - Returns: What earlier starts recorded; nil if no start has begun the broadcast.
    static func check(
        path: String, identity: CampaignIdentity
    ) throws(BroadsideError) -> Earlier? {
        try LedgerDirectory.checkForRun(path, begins: true)
        if try !fileExists(path) { try checkFolder(of: path, option: "ledger") }
        let directory = LedgerDirectory.unlocked(path)
        guard try directory.hasManifest else { return nil }
        try check(directory.readManifest(), path, identity)
        let reader = try LedgerReader(path: path)
        let (index, manifest) = try reader.current((reader.directory, reader.manifest))
        do throws(LedgerError) {
            return Earlier(
                state: try outcome(in: index).state,
                expirationSeconds: manifest.expirationSeconds ?? 0, server: server(in: manifest))
        } catch {
            throw LedgerReader.unreadable(error, directory)
        }
    }

    private static func server(in manifest: Manifest) -> String? {
        manifest.epochs.last { $0.endpoint != nil }?.endpoint
    }

    private static func check(
        _ manifest: Manifest, _ path: String, _ identity: CampaignIdentity
    ) throws(BroadsideError) {
        guard let difference = manifest.identity.firstDifference(from: identity) else { return }
        throw .usage(
            "ledger",
            "\(path) belongs to another campaign: \(difference): name another directory, or give the "
                + "same options")
    }

    private func warnOfCopies() throws(BroadsideError) {
        for warning in try directory.claimAttempt(manifest) {
            standardErrorLine("broadside: warning: \(warning)")
        }
    }

    private static func outcome(in index: LedgerIndex) throws(LedgerError) -> Outcome {
        guard let chunk = index.chunkIndex(ofRow: 0) else { return Outcome() }
        var verdicts = ChunkVerdicts(of: index)
        try verdicts.load(chunk: chunk)
        let row = verdicts.rows[0]
        var outcome = Outcome(
            state: row.state, status: row.status, reason: Reason(rawValue: row.reason)?.text ?? "",
            attempts: row.attempts, settledAtMilliseconds: row.settledAtMilliseconds)
        if let text = verdicts.reasonText(ofRow: 0) {
            outcome.reason = String(decoding: text, as: UTF8.self)
        }
        return outcome
    }

    /// ID of the request; it is the same in all attempts.
    var requestID: String {
        let bytes = [UInt8](capacity: NotificationID.textCount) { output in
            NotificationID(campaign: manifest.campaignNumber, row: 0).write(into: &output)
        }
        return String(decoding: bytes, as: UTF8.self)
    }

    /// Value of apns-expiration.
    var expirationSeconds: UInt64 { manifest.expirationSeconds ?? 0 }

    /// Host and port of the server of the latest request; nil if it is not known.
    var server: String? { Self.server(in: manifest) }

    /// Value of apns-unique-id in the response; nil if it had none.
    var uniqueID: String? { manifest.broadcastUniqueID }

    /// Removes the ledger if its broadcast has not begun.
    func discardUnlessBegun() { directory.discardUnlessBegun() }

    /// The options with which a later start sends the broadcast, for messages.
    var nextOptions: String {
        mayHaveBeenSent ? "the same --ledger and --retry unknown" : "the same --ledger"
    }

    // MARK: A run

    /// Begins a run in the ledger. The row can then be reserved, but is not reserved yet.
    ///
    /// - Parameter server: Host and port to which the run sends the request; nil: it sends none.
    func begin(server: String?, _ now: Now) throws(BroadsideError) {
        precondition(writer == nil, "a run begins after the previous one has ended")
        epoch = manifest.beginEpoch(
            atMilliseconds: now.wallMilliseconds, endpoint: server,
            previousLengths: previousLengths)
        manifest.recordRunShape(isInListOrder: true, segmentCount: 1)
        try directory.save(manifest)
        if isNew { try warnOfCopies() }
        isNew = false
        descriptor = try directory.createSegment(epoch: epoch, reactor: 0)
        try directory.syncDirectory()
        writer = LedgerWriter(campaign: manifest.segmentNumber, epoch: epoch, reactor: 0)
        try write()
        manifest.recordCreatedSegments()
        try directory.save(manifest)
    }

    /// Reserves the row durably, before its request is sent.
    ///
    /// - Parameter reopens: States from which the row may be sent again.
    func reserve(reopening reopens: ReopenedStates, _ now: Now) throws(BroadsideError) {
        precondition(writer != nil, "a row is reserved in a run")
        var chunk = ChunkReservation.broadcast
        chunk.reopens = reopens
        writer?.reserve(chunk, nowMilliseconds: now.wallMilliseconds)
        try write()
        mayHaveBeenSent = outcome.state == .inDoubt || outcome.state == .unknown
        // As for every ledger, the attempts count over all runs, and a row that a run left in doubt
        // counts as sent once by that run.
        var attempts = outcome.attempts
        if outcome.state == .inDoubt, attempts < .max { attempts += 1 }
        outcome = Outcome(state: .inDoubt, attempts: attempts)
    }

    /// Counts a request of the reserved row.
    func countAttempt() {
        precondition(outcome.state == .inDoubt, "only a reserved row is sent")
        if outcome.attempts < .max { outcome.attempts += 1 }
    }

    /// Records the outcome durably.
    ///
    /// - Parameter uniqueID: Value of apns-unique-id; nil if there is none.
    /// - Throws: Exit code 5. The message also has the outcome.
    func settle(
        _ state: RowState, status: UInt16, reason: Reason?, reasonText: String? = nil,
        uniqueID: String? = nil, _ now: Now
    ) throws(BroadsideError) {
        do throws(BroadsideError) {
            try recordOutcome(state, status, reason, reasonText, uniqueID, now)
        } catch {
            throw unrecorded(state, error)
        }
    }

    private func recordOutcome(
        _ state: RowState, _ status: UInt16, _ reason: Reason?, _ reasonText: String?,
        _ uniqueID: String?, _ now: Now
    ) throws(BroadsideError) {
        precondition(outcome.state == .inDoubt, "only a reserved row has an outcome")
        // An earlier start that was killed may have sent a request without counting it.
        let attempts = max(1, outcome.attempts)
        if state == .accepted {
            writer?.accepted(
                row: 0, fingerprint: 0, attempts: Int(attempts),
                nowMilliseconds: now.wallMilliseconds)
        } else {
            let text = reason == nil ? reasonText.map { Array($0.utf8) } : nil
            record(state, status, reason, text ?? [], attempts, now)
        }
        assert(state != .accepted || status == 200, "only a 200 is an acceptance")
        assert(state.isSettled, "an outcome is final")
        try write()
        outcome = Outcome(
            state: state, status: status, reason: reason?.text ?? reasonText ?? "",
            attempts: attempts, settledAtMilliseconds: now.wallMilliseconds)
        manifest.broadcastUniqueID = uniqueID
        try end()
    }

    private func record(
        _ state: RowState, _ status: UInt16, _ reason: Reason?, _ reasonText: [UInt8],
        _ attempts: UInt16, _ now: Now
    ) {
        // A channel is not a device token.
        let noToken: [UInt8] = []
        if reasonText.isEmpty {
            writer?.settled(
                row: 0, state: state, status: status, reason: reason?.rawValue ?? 0,
                attempts: Int(attempts), token: noToken.rawSpan, tokenIsText: false,
                nowMilliseconds: now.wallMilliseconds)
        } else {
            writer?.settled(
                row: 0, state: state, status: status, reason: 0, reasonText: reasonText.rawSpan,
                attempts: Int(attempts), token: noToken.rawSpan, tokenIsText: false,
                nowMilliseconds: now.wallMilliseconds)
        }
    }

    /// Records that the response was lost.
    func settleUnknown(_ now: Now) throws(BroadsideError) {
        try settle(.unknown, status: 0, reason: .connectionLost, now)
    }

    /// Records durably that this start's requests were certainly not processed, so that the next
    /// attempt or a later start sends the broadcast.
    func release(_ now: Now) throws(BroadsideError) {
        precondition(outcome.state == .inDoubt, "only a reserved row is released")
        guard !mayHaveBeenSent else { return try settleUnknown(now) }
        do throws(BroadsideError) {
            writer?.release(
                row: 0, count: 1, attempts: Int(outcome.attempts),
                nowMilliseconds: now.wallMilliseconds)
            try write()
            outcome = Outcome(state: .remaining, attempts: outcome.attempts)
            try end()
        } catch {
            throw unrecorded(.remaining, error)
        }
    }

    /// Returns the error of a ledger that failed after a request. The ledger may not show the
    /// outcome, so only this message can keep the caller from sending the broadcast twice.
    private func unrecorded(_ state: RowState, _ failure: BroadsideError) -> BroadsideError {
        let found =
            switch state {
            case .accepted: "APNs accepted the broadcast"
            case .rejected: "APNs refused the broadcast"
            case .failed, .remaining: "APNs did not process the broadcast"
            default: "devices may have received the broadcast"
            }
        var error = failure
        error.message = "\(found), but its ledger can't record this: \(failure.message)"
        guard state == .accepted || state == .unknown else { return error }
        error.message +=
            (try? directory.hasManifest) == true
            ? "; with the same --ledger, only --retry unknown could send the broadcast again"
            : "; a start without this ledger sends the broadcast again"
        return error
    }

    /// Records the run's end in the manifest.
    private func end() throws(BroadsideError) {
        guard let position = writer?.writtenPosition else {
            preconditionFailure("only a run that has begun ends")
        }
        manifest.endEpoch(
            lengths: [SegmentLength(reactor: 0, byteCount: position)],
            isFinished: outcome.state.isSettled)
        try directory.save(manifest)
        close(descriptor)
        descriptor = -1
        writer = nil
    }

    private func write() throws(BroadsideError) {
        guard writer?.writePending(to: descriptor) == true, fsync(descriptor) == 0 else {
            throw directory.failure(LedgerFormat.segmentName(epoch: epoch, reactor: 0))
        }
        if let position = writer?.writtenPosition { writer?.syncCompleted(upTo: position) }
    }
}
