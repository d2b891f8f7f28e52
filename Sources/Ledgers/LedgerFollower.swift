import BroadsideAPNs
public import BroadsideLedgerFormat
import BroadsideLists
import BroadsideRows
public import BroadsideSupport
internal import Glibc

/// Implementation of `ledger export --follow`: writes the rows of a ledger in the order of their
/// verdicts, until its run has ended.
///
/// Only durable rows are written. So a row that was written keeps its verdict, unless a later run
/// sends it again on request.
public final class LedgerFollower {
    /// Options of the command.
    public struct Request {
        /// Directory of the ledger.
        public var ledger: String
        /// Path of the list; nil: the path from which the run read it, if it still exists.
        public var tokens: String?
        /// Format of a row.
        public var format = ExportFormat.csv
        /// Names of the states whose rows are written; empty to write all settled rows.
        public var states: [String] = []
        /// Reasons whose rows are written; empty to write rows with any reason or none.
        public var reasons: [String] = []
        /// Arm whose rows are written; nil to write all rows.
        public var arm: String?
        /// Optional columns that were requested.
        public var columns: Set<ExportColumn> = []
        /// File to append to; nil or `-` for standard output.
        public var output: String?
        /// File with the progress of followers; nil for none.
        public var cursor: String?

        /// Requests all rows of a ledger.
        public init(ledger: String) { self.ledger = ledger }
    }

    /// Result of the run that was followed.
    public enum Ending {
        /// Every row of the campaign is settled.
        case finished
        /// Rows remain, which a later run may settle.
        case rowsAreLeft
    }

    /// Interval between checks of a ledger with an active run.
    private static let pauseMicroseconds: UInt32 = 200_000
    /// Time after which the follower syncs a segment if its run has not synced it.
    private static let syncAfter = Duration.seconds(1)

    private let request: Request
    private let reader: LedgerReader
    private let directory: LedgerDirectory
    private var manifest: Manifest
    /// The list that was sent; nil if it is missing, or if another list is at its path.
    private var list: (source: TokenList, reader: ListPartReader)?
    private var rows: SettledRows
    /// Index of the runs before a run. It is made only if that run may have recorded their verdicts
    /// again.
    private var earlier: (epoch: UInt32, index: LedgerIndex)?
    private let output: FollowOutput
    private var cursor: FollowCursor
    /// The progress in each segment, ordered by run and reactor.
    private var tails: [SegmentTail] = []
    /// For each segment, the latest time at which all bytes read by the follower were durable.
    private var syncedAt: [String: ContinuousClock.Instant] = [:]
    private var needsHeader: Bool
    /// Whether the follower started without a cursor.
    private let isFresh: Bool

    /// Opens ledger, list, cursor and output.
    ///
    /// - Throws: Exit code 2 if there is no ledger yet, or if options, cursor and ledger do not
    ///   belong together.
    public init(_ request: Request) throws(BroadsideError) {
        self.request = request
        guard try fileExists(request.ledger) else {
            throw .usage(
                "ledger",
                "\(request.ledger) does not exist yet: follow it once its run "
                    + "has started")
        }
        reader = try LedgerReader(path: request.ledger)
        directory = reader.directory
        manifest = reader.manifest
        guard manifest.shards == nil else {
            throw .usage(
                "follow",
                "\(request.ledger) is a merged ledger, which does not grow: "
                    + "leave out --follow")
        }
        let states = try Self.states(request.states)
        try reader.checkArm(request.arm)
        try Self.checkOutputs(request, reader)
        let identity = manifest.identity
        let fresh = FollowCursor(
            campaign: manifest.campaign, part: identity.partNumber, format: request.format,
            states: request.states, reasons: request.reasons, arm: request.arm,
            columns: request.columns)
        let known = try Self.read(request.cursor)
        if let known, let path = request.cursor { try Self.check(known, fresh, path) }
        cursor = known ?? fresh
        isFresh = known == nil
        needsHeader = known.map { $0.output?.byteCount == 0 } ?? true
        rows = SettledRows(
            states: states, reasons: Set(request.reasons), format: request.format,
            segmentNumber: manifest.segmentNumber,
            // Only requests to the provider API have an apns-id.
            campaign: identity.hasNotificationIDs ? manifest.campaignNumber : nil,
            part: identity.partNumber, acceptsBySilence: identity.acceptsBySilence,
            split: identity.split, hasTopics: identity.hasRowTopics, arm: request.arm,
            columns: request.columns,
            reasonText: { Reason(rawValue: $0)?.text ?? "reason \($0)" })
        if request.tokens == nil { try reader.warnOfMissingList(of: reader.ledgers[0]) }
        list = try reader.openList(request.tokens, of: reader.ledgers[0]).map {
            ($0, ListPartReader(list: $0))
        }
        output = try FollowOutput(request.output, cursor: known)
    }

    private static func states(_ names: [String]) throws(BroadsideError) -> Set<RowState> {
        let states = try LedgerReader.states(names)
        if let open = states.first(where: { !$0.isSettled }) {
            throw .usage(
                "state",
                "\(open.name) is not the state of a settled row: remove it, or "
                    + "leave out --follow")
        }
        return states
    }

    private static func checkOutputs(
        _ request: Request, _ reader: LedgerReader
    ) throws(BroadsideError) {
        let list = request.tokens.map { [OutputRule.Input(option: "tokens", path: $0)] } ?? []
        let rule = OutputRule(inputs: list, ledgers: [request.ledger])
        try reader.checkOutput(request.output)
        if let output = request.output { try rule.check(option: "output", path: output) }
        guard let cursor = request.cursor else { return }
        try reader.checkOutput(cursor, option: "cursor")
        try rule.check(option: "cursor", path: cursor)
        guard ListCompression.named(cursor) == nil, cursor != "-", !isSpecialFile(cursor) else {
            throw .usage(
                "cursor", "\(cursor): name a regular file that does not end with .gz or .zst")
        }
        try checkWritable(cursor, option: "cursor")
    }

    // MARK: The cursor

    private static func read(_ path: String?) throws(BroadsideError) -> FollowCursor? {
        guard let path, try fileExists(path) else { return nil }
        let bytes = try readFile(path, option: "cursor", limit: FollowCursor.byteCountMax)
        guard let cursor = FollowCursor(decoding: bytes) else {
            throw .usage(
                "cursor",
                "\(path) is not a cursor of this version: name the file that --follow wrote")
        }
        return cursor
    }

    /// Checks that a cursor belongs to this ledger and this request.
    private static func check(
        _ known: FollowCursor, _ asked: FollowCursor, _ path: String
    ) throws(BroadsideError) {
        guard known.campaign == asked.campaign, known.part == asked.part else {
            throw .usage(
                "cursor",
                "\(path) belongs to another ledger, of campaign \(known.campaign)"
                    + (known.part > 0 ? ", part \(known.part)" : "") + ": use one cursor per ledger"
            )
        }
        guard known.format == asked.format else {
            throw .usage(
                "cursor",
                "\(path) was written with --format \(known.format): use the same "
                    + "format")
        }
        guard known.columns == asked.columns else {
            throw .usage(
                "cursor",
                "\(path) was written "
                    + (known.columns.map {
                        "with --columns \($0.map { "+\($0)" }.joined(separator: ","))"
                    } ?? "without --columns") + ": use the same columns")
        }
        guard known.states == asked.states, known.reasons == asked.reasons,
            known.arm == asked.arm
        else {
            let filters =
                known.states.map { "--state \($0)" } + known.reasons.map { "--reason \($0)" }
                + (known.arm.map { ["--arm \($0)"] } ?? [])
            throw .usage(
                "cursor",
                "\(path) was written with "
                    + (filters.isEmpty
                        ? "neither --state nor --reason" : filters.joined(separator: " "))
                    + ": name the same filters")
        }
    }

    /// Returns the error for a cursor that is ahead of the ledger.
    private func isAhead(_ segment: String) -> BroadsideError {
        .usage(
            "cursor",
            "\(request.cursor ?? "") is ahead of \(segment) in \(request.ledger), which was replaced "
                + "by an older or repaired copy: follow from the start with another cursor and output"
        )
    }

    /// Saves the progress of the output.
    private func saveCursor() throws(BroadsideError) {
        cursor.output = try output.flush()
        guard let path = request.cursor else { return }
        for tail in tails {
            assert(
                cursor.segments[tail.name].map { $0 <= tail.emitted } ?? true,
                "a cursor does not go back")
            cursor.segments[tail.name] = tail.emitted
        }
        // The name is fixed, so that the next follower replaces this file if the process is killed
        // here.
        let folder = OutputRule.parent(of: path)
        let temporary = "\(folder)/.\(path.parts(atLast: "/")?.1 ?? path[...]).new"
        func failure() -> BroadsideError {
            BroadsideError(
                option: "cursor", "\(path): \(describe(errno: errno))", exitCode: ExitCode.disk)
        }
        let descriptor = SystemCall.open(
            temporary, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0o600)
        guard descriptor >= 0 else { throw failure() }
        defer { close(descriptor) }
        try writeAll(cursor.encoded(), to: descriptor, name: path)
        guard fsync(descriptor) == 0, SystemCall.rename(temporary, path) == 0,
            syncFolder(folder)
        else { throw failure() }
    }

    // MARK: Following

    /// Writes rows until the run has ended.
    public func run() throws(BroadsideError) -> Ending {
        // Without this, a follower that is killed before its first cursor would leave a file
        // without a cursor.
        if isFresh, output.isFile, request.cursor != nil { try saveCursor() }
        // After the run has ended, a second pass emits the rows that the first one found and
        // synced.
        var passesAtRest = 0
        while passesAtRest < 2 {
            let isRunning = directory.isInUse
            passesAtRest = isRunning ? 0 : passesAtRest + 1
            if passesAtRest == 2 { try validate() }
            try pass(isRunning: isRunning)
            if isRunning { usleep(Self.pauseMicroseconds) }
        }
        if needsHeader { try writeBatch() }
        return manifest.isFinished ? .finished : .rowsAreLeft
    }

    /// Checks the whole ledger once its run has ended. A scan ends at a damaged block as at the end
    /// of a segment, and does not notice that a segment is missing.
    private func validate() throws(BroadsideError) {
        let (manifest, segments) = try directory.segments(knownTo: self.manifest)
        do throws(LedgerError) {
            _ = try manifest.validate(segments, skipsAccepted: true) { _, _ in }
        } catch {
            throw reader.unreadable(error, directory, tokens: request.tokens)
        }
    }

    /// Reads the appended bytes and writes the durable rows.
    ///
    /// Each pass emits only what earlier passes scanned, for the following reason. A reactor may
    /// settle a row of a chunk that another reactor reserved. The lengths of the two segments are
    /// read one after the other, so a pass may find the verdict without the reservation. The next
    /// pass finds the reservation.
    private func pass(isRunning: Bool) throws(BroadsideError) {
        manifest = try directory.readManifest()
        guard manifest.campaign == cursor.campaign else {
            throw .usage(
                "ledger",
                "\(request.ledger) was replaced by another campaign's ledger while it was being "
                    + "followed")
        }
        let recorded = manifest.recordedLengths
        for position in try directory.durablePositions(manifest) {
            guard let index = tailIndex(position.epoch, position.reactor) else { continue }
            tails[index].noteDurable(position.position)
        }
        let known = Set(manifest.epochs.map(\.number))
        let segments = try directory.segments().filter { known.contains($0.epoch) }
        for index in tails.indices { tails[index].release() }
        do throws(LedgerError) {
            for segment in segments { try scan(segment, recorded, isRunning: isRunning) }
        } catch {
            throw reader.unreadable(error, directory, tokens: request.tokens)
        }
        for name in cursor.segments.keys where !segments.contains(where: { $0.name == name }) {
            throw isAhead(name)
        }
        if let lost = tails.first(where: { !$0.isAtBlock && cursor.segments[$0.name] != nil }) {
            throw isAhead(lost.name)
        }
        try emit(segments)
    }

    private func tailIndex(_ epoch: UInt32, _ reactor: UInt16) -> Int? {
        tails.firstIndex { $0.epoch == epoch && $0.reactor == reactor }
    }

    /// Writes the rows that are known to be durable. Rows of earlier runs come first.
    private func emit(_ segments: [LedgerSegment]) throws(BroadsideError) {
        while let epoch = tails.first(where: \.hasRows)?.epoch {
            let indices = tails.indices.filter { tails[$0].epoch == epoch && tails[$0].hasRows }
            let start = manifest.epochs.first { $0.number == epoch }?.startedAtMilliseconds ?? 0
            let share = max(1, SettledRows.batchRecordsMax / indices.count)
            var isRead = false
            do throws(LedgerError) {
                for index in indices where !rows.isFull {
                    let tail = tails[index]
                    let segment = segments.first {
                        $0.epoch == tail.epoch && $0.reactor == tail.reactor
                    }
                    guard let segment else { continue }
                    let isMore = try rows.read(
                        &tails[index], segment, of: manifest.rows, startedAtMilliseconds: start,
                        atMost: share)
                    isRead = isMore || isRead
                }
                if rows.mayRepeatVerdicts {
                    try rows.removeRepeatedVerdicts(of: index(before: epoch, segments))
                }
            } catch {
                throw reader.unreadable(error, directory, tokens: request.tokens)
            }
            // No whole block is known to be durable.
            guard isRead else { return }
            try writeBatch()
        }
    }

    /// Returns the index of the runs before a run, which do not change any more.
    private func index(
        before epoch: UInt32, _ segments: [LedgerSegment]
    ) throws(LedgerError) -> LedgerIndex {
        if let earlier, earlier.epoch == epoch { return earlier.index }
        let index = try LedgerIndex(
            segments: segments.filter { $0.epoch < epoch }, campaign: manifest.segmentNumber,
            recordedLengths: manifest.recordedLengths.filter { $0.key < epoch },
            rows: manifest.rows)
        earlier = (epoch, index)
        return index
    }

    private func writeBatch() throws(BroadsideError) {
        if var list {
            do throws(LedgerError) {
                try rows.complete(from: &list.reader)
                self.list = list
            } catch {
                guard request.tokens == nil, LedgerReader.canContinueWithoutList(error, []) else {
                    throw reader.unreadable(error, directory, tokens: request.tokens)
                }
                LedgerReader.warn(error, of: list.source)
                self.list = nil
            }
        }
        var text: [UInt8] = []
        if needsHeader {
            request.format.appendHeader(
                to: &text, hasArms: manifest.identity.split != nil,
                hasTopics: manifest.identity.hasRowTopics, further: request.columns)
            needsHeader = false
        }
        rows.takeBatch(into: &text)
        if !text.isEmpty { try output.write(text) }
        try saveCursor()
    }

    /// Reads the bytes appended to a segment. Syncs the segment if its run does not.
    private func scan(
        _ segment: LedgerSegment, _ recorded: [UInt32: [SegmentLength]], isRunning: Bool
    ) throws(LedgerError) {
        let index = tailIndex(segment.epoch, segment.reactor) ?? tails.count
        if index == tails.count {
            tails.append(
                SegmentTail(
                    epoch: segment.epoch, reactor: segment.reactor,
                    emitted: cursor.segments[segment.name]))
            tails.sort { ($0.epoch, $0.reactor) < ($1.epoch, $1.reactor) }
            return try scan(segment, recorded, isRunning: isRunning)
        }
        let available = segment.bytes.byteCount
        let length = recorded[segment.epoch].map { lengths in
            lengths.first { $0.reactor == segment.reactor }?.byteCount ?? 0
        }
        if let length { tails[index].noteDurable(length) }
        try rows.scan(&tails[index], segment, upTo: min(available, length ?? available))
        if let damage = tails[index].damage(byteCount: available) { throw damage }
        let now = ContinuousClock.now
        guard tails[index].scanned > tails[index].durable else {
            syncedAt[segment.name] = now
            return
        }
        let since = syncedAt[segment.name, default: now]
        syncedAt[segment.name] = since
        guard !isRunning || now - since >= Self.syncAfter else { return }
        guard let file = segment.bytes as? FileBytes, file.sync() else {
            throw LedgerError(
                .inputOutput, segment: segment.name, detail: describe(errno: errno))
        }
        tails[index].noteSynced()
        syncedAt[segment.name] = now
    }
}
