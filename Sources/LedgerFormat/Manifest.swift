public import BroadsidePolicy
internal import BroadsidePrimitives
public import BroadsideRows
internal import CBroadsideDeflate

/// Contents of `manifest.json`: the campaign, the runs that wrote the ledger, and the segments that
/// these runs must have left.
///
/// The file is replaced by a rename at three times: before a run's first segment is created; once
/// all segments are synced, before any reservation; and when the run ends. A resume syncs the
/// segments that it found, and records their lengths before it uses them. A later loss is then
/// noticed.
public struct Manifest: Codable, Hashable, Sendable {
    /// Version of the format that this code writes. It rises with each added kind of record. It
    /// also rises with each added field, because code that does not know the field could not verify
    /// the checksum.
    static let currentVersion = 3

    /// A run of the campaign.
    public struct Epoch: Codable, Hashable, Sendable {
        /// Number of the run, from 1.
        public var number: UInt32
        /// Time of the run's start, in milliseconds since 1970.
        public var startedAtMilliseconds: UInt64
        /// Host and port of the run's server; nil if unknown. Earlier versions did not record it.
        public var endpoint: String?
        /// Lengths of the run's segments, once the run ended orderly or was resumed; nil before.
        public var segments: [SegmentLength]?
        /// End of the rows that the run was permitted to read, as a row number; nil if unlimited or
        /// unknown.
        var rowsLimit: UInt64?
        /// Whether each of the run's segments reserves rows in list order (a canary prevents this);
        /// nil if unknown.
        var isInListOrder: Bool?
        /// Number of segments that the run created before its first row; nil if unknown.
        var segmentCount: UInt16?
        /// Whether all segments of the run are on disk, each with its header; nil if unknown. The
        /// run reserves no rows until this is true. If a segment is missing later, it was lost.
        var segmentsAreMade: Bool?
        /// Cause of the run's end; nil if the run has not ended, or if an earlier version of
        /// Broadside recorded the run.
        public var stop: StopRecord?

        /// Creates a run that has not ended.
        public init(number: UInt32, startedAtMilliseconds: UInt64) {
            self.number = number
            self.startedAtMilliseconds = startedAtMilliseconds
        }
    }

    /// Counters that accumulate over runs and cannot be derived from the segments.
    public struct Counters: Codable, Hashable, Sendable {
        /// Requests sent again.
        public var retries: UInt64 = 0
        /// Rows with a value that was shortened to fit the payload; nil if no payload allows
        /// shortening.
        public private(set) var shortened: UInt64?
        /// Connections that replaced lost ones.
        public var reconnects: UInt64 = 0
        /// All connections made.
        public var connections: UInt64 = 0

        /// Creates counters that are all zero.
        init() {}

        /// Returns the number of rows with a shortened value, including those of another run; nil
        /// if no payload of any of these runs shortens a value.
        public func shortened(with more: UInt64?) -> UInt64? {
            guard let more else { return shortened }
            return (shortened ?? 0) + more
        }

        /// Adds a number of rows with a shortened value. The number is nil if no payload shortens
        /// values.
        public mutating func add(shortened more: UInt64?) { shortened = shortened(with: more) }
    }

    /// Version of the format.
    private(set) var version = Manifest.currentVersion
    /// Campaign number: 16 hexadecimal digits.
    public private(set) var campaign: String
    /// Identity of the campaign.
    public var identity: CampaignIdentity
    /// Start of the first run, in milliseconds since 1970; the origin of relative times.
    public var firstStartedAtMilliseconds: UInt64
    /// The apns-expiration in seconds since 1970, fixed at the first start.
    public var expirationSeconds: UInt64?
    /// Name of the campaign, from the latest run that set it; nil if none did.
    public var name: String?
    /// The labels of the campaign by key, from the latest run that set any; nil if none did.
    public var labels: [String: String]?
    /// Path of the list; nil if it was spooled into the ledger.
    public var listPath: String?
    /// Range of the list that the campaign covers, if shards are byte ranges; nil for the whole
    /// list.
    public var part: ListExtent?
    /// Subdirectories of a merged ledger, one per shard; nil for any other ledger.
    public var shards: [String]?
    /// Whether the canary has passed.
    public var canaryPassed = false
    /// Number of rows of the canary; nil if the campaign started without a canary. No other rows
    /// are reserved before the canary has passed.
    public var canaryRowCount: UInt64?
    /// The runs, in order.
    public private(set) var epochs: [Epoch] = []
    /// Whether every row is settled.
    public private(set) var isFinished = false
    /// Whether every row of the list is settled. False if the latest run read up to its limit,
    /// because the list may have more rows.
    public var isWholeListFinished: Bool { isFinished && !extendsBeyond(limit: nil) }
    /// End of the campaign's rows, as a row number; nil until a run has read the list, or the
    /// campaign's range of it, to the end or to `rowsLimit`.
    public var rowCount: UInt64?
    /// End of the rows that the latest run was permitted to read, as a row number; nil if
    /// unlimited.
    public var rowsLimit: UInt64?
    /// `ListHash` of the whole decoded list. It is set at the start if the whole list was read
    /// before the first row was sent. Otherwise it is set once a run has read the list to its end
    /// and every row is settled.
    public var listHash: String?
    /// `ListHash` of the list's header; nil if the list's format has no header.
    public var headerHash: String?
    /// The apns-unique-id of a broadcast's response; nil if there was none.
    public var broadcastUniqueID: String?
    /// Names of the time zones that the campaign's rows have, ascending. Each was known to the
    /// system at a start. nil if rows have no time zones, or if an earlier version of Broadside
    /// recorded the campaign.
    public private(set) var zones: [String]?
    /// Rows whose devices were erased before a run settled them; nil if there are none.
    public private(set) var erasedRows: ErasedRows?
    /// Counters that accumulate over runs.
    public var counters = Counters()
    /// CRC-32 of the encoded manifest with 0 in this field.
    private var checksum: UInt32 = 0

    /// Creates the manifest of a new campaign without runs.
    public init(
        campaign: UInt64, identity: CampaignIdentity, firstStartedAtMilliseconds: UInt64,
        expirationSeconds: UInt64? = nil, listPath: String?
    ) {
        let digits = String(campaign, radix: 16)
        self.campaign = String(repeating: "0", count: 16 - digits.utf8.count) + digits
        self.identity = identity
        self.firstStartedAtMilliseconds = firstStartedAtMilliseconds
        self.expirationSeconds = expirationSeconds
        self.listPath = listPath
    }

    /// Records the hash of the whole list. Without tokens, and with erased rows, a ledger has no
    /// hash of a list with a single row, because that hash would identify the row's token.
    public mutating func record(listHash hash: String?, hasSeveralRows: Bool) {
        let mayIdentify = !identity.keepsTokens || erasedRows != nil
        if !mayIdentify || hasSeveralRows { listHash = hash }
    }

    /// Adds rows whose devices are erased before a run settled them.
    public mutating func record(erasedRows rows: ErasedRows) {
        guard !rows.isEmpty else { return }
        erasedRows = (erasedRows ?? ErasedRows()).union(rows)
    }

    /// Maximum number of time zones that are recorded.
    static let zonesLimit = 4_096

    /// Adds time zones that rows of the campaign have. If a run has a higher limit than the runs
    /// before it, it may find further zones.
    ///
    /// - Returns: Whether the manifest has changed.
    public mutating func record(zones names: [String]) -> Bool {
        let all = Array(Set(zones ?? []).union(names).sorted().prefix(Self.zonesLimit))
        guard all != zones else { return false }
        zones = all
        return true
    }

    /// The campaign's number, as in apns-ids.
    public var campaignNumber: UInt64 { UInt64(campaign, radix: 16)! }

    /// Starts a run.
    ///
    /// - Parameters:
    ///   - milliseconds: Current time, since 1970.
    ///   - endpoint: Host and port of the run's server; nil if it has none.
    ///   - lengths: Lengths of the previous run's segments, from
    ///     `LedgerIndex.segmentLengths(epoch:)`; kept only if that run did not record them itself.
    /// - Returns: Number of the run.
    public mutating func beginEpoch(
        atMilliseconds milliseconds: UInt64, endpoint: String? = nil,
        previousLengths lengths: [SegmentLength] = []
    ) -> UInt32 {
        if let last = epochs.indices.last, epochs[last].segments == nil {
            epochs[last].segments = lengths
        }
        version = Manifest.currentVersion
        let number = (epochs.last?.number ?? 0) + 1
        assert(epochs.allSatisfy { $0.number < number }, "the numbers of epochs only grow")
        var epoch = Epoch(number: number, startedAtMilliseconds: milliseconds)
        epoch.endpoint = endpoint
        epochs.append(epoch)
        isFinished = false
        return number
    }

    /// Ends the latest run orderly, with its segments written and synced.
    ///
    /// - Parameters:
    ///   - lengths: Lengths of the run's segments.
    ///   - isFinished: Whether every row of the list is settled.
    ///   - stop: Cause of the run's end.
    public mutating func endEpoch(
        lengths: [SegmentLength], isFinished: Bool, stop: StopRecord? = nil
    ) {
        precondition(!epochs.isEmpty, "no run was begun")
        assert(Set(lengths.map(\.reactor)).count == lengths.count, "each segment has one length")
        epochs[epochs.count - 1].segments = lengths
        epochs[epochs.count - 1].stop = stop
        self.isFinished = isFinished
    }

    /// Replaces the cause of the latest run's end if exactly one of both causes is that the campaign
    /// or its list is wrong. Another start has judged the same rows with other options.
    ///
    /// - Returns: Whether the manifest has changed. It does not change if that run recorded no
    ///   cause, or one that this version does not know.
    public mutating func replaceStop(_ cause: StopCause) -> Bool {
        guard let last = epochs.last?.stop, let known = last.cause,
            known.isAbort != cause.isAbort
        else { return false }
        epochs[epochs.count - 1].stop = StopRecord(cause, wasAnswered: last.wasAnswered)
        return true
    }

    /// Rows of the list that the campaign covers.
    public var rows: CampaignRows {
        CampaignRows(part: part ?? .wholeList, selection: identity.selection, limit: rowsLimit)
    }

    /// Returns the number of the campaign's rows.
    ///
    /// - Parameters:
    ///   - ledger: Summary of its ledger.
    ///   - end: End of the rows that were read; nil to use the manifest's.
    /// - Returns: nil if the end of the list is unknown.
    public func rowCount(with ledger: LedgerSummary, upTo end: UInt64? = nil) -> UInt64? {
        (end ?? rowCount).map { rows.count(upTo: $0) + ledger.beyondLimitCount }
    }

    /// Number of the campaign's rows; nil if only the ledger shows it. An earlier run may have sent
    /// rows beyond the limit of the latest run.
    public var knownRowCount: UInt64? {
        guard let rowCount, epochs.allSatisfy({ $0.rowsLimit ?? .max <= rows.end }) else {
            return nil
        }
        return rows.count(upTo: rowCount)
    }

    /// Records the row limit of a run before the run starts.
    public mutating func look(upTo limit: UInt64?) {
        if extendsBeyond(limit: limit) {
            rowCount = nil
        } else if let limit, let known = rowCount {
            rowCount = min(known, limit)
        }
        rowsLimit = limit
    }

    /// Records the row order of the starting run, and its number of segments.
    ///
    /// - Parameters:
    ///   - isInListOrder: Whether each of its segments reserves rows in list order.
    ///   - segmentCount: Number of segments that it creates.
    public mutating func recordRunShape(isInListOrder: Bool, segmentCount: Int) {
        guard let last = epochs.indices.last else { return }
        epochs[last].segmentCount = UInt16(clamping: segmentCount)
        epochs[last].segmentsAreMade = false
        epochs[last].isInListOrder = isInListOrder
        epochs[last].rowsLimit = rowsLimit
    }

    /// Records that all segments of the starting run are on disk, so that the run may reserve rows.
    public mutating func recordCreatedSegments() {
        precondition(epochs.last?.segmentCount != nil, "the run's course is not noted")
        epochs[epochs.count - 1].segmentsAreMade = true
    }

    /// Assumes that the latest run had started sending. A copy of the manifest may be older than
    /// the ledger, and then does not show whether that run started sending.
    public mutating func assumeSegmentsMade() {
        for epoch in epochs.indices where epochs[epoch].segmentsAreMade == false {
            epochs[epoch].segmentsAreMade = true
        }
    }

    /// Replaces the runs by those that a repair found.
    mutating func replaceEpochs(_ found: [Epoch], isFinished: Bool) {
        assert(
            zip(found, found.dropFirst()).allSatisfy { $0.number < $1.number },
            "the numbers of epochs only grow")
        version = Manifest.currentVersion
        epochs = found
        self.isFinished = isFinished
    }

    /// Sets whether every row is settled, for a ledger that is merged rather than written by a run.
    mutating func finish(_ isFinished: Bool) { self.isFinished = isFinished }

    /// Whether a run with this limit would read more rows than the latest run, which is finished.
    public func extendsBeyond(limit: UInt64?) -> Bool {
        guard let rowsLimit, let rowCount, rowCount >= rowsLimit else { return false }
        return limit.map { $0 > rowsLimit } ?? true
    }

    /// Whether the latest run had a limit, and the list has at least that many rows; nil if no run
    /// has read to this limit or to the list's end.
    public var endsAtLimit: Bool? {
        guard let rowsLimit else { return false }
        return rowCount.map { $0 >= rowsLimit }
    }

    /// Recorded segment lengths by run, for `LedgerIndex`.
    public var recordedLengths: [UInt32: [SegmentLength]] {
        var lengths: [UInt32: [SegmentLength]] = [:]
        for epoch in epochs { lengths[epoch.number] = epoch.segments }
        return lengths
    }

    /// Returns the encoding of another version of the format, for tests.
    func encoded(version: Int) -> [UInt8] {
        var copy = self
        copy.version = version
        return copy.encoded()
    }

    /// Returns the bytes of `manifest.json`.
    public func encoded() -> [UInt8] {
        var copy = self
        copy.checksum = copy.computedChecksum()
        return copy.json(isPretty: true) + [0x0A]
    }

    /// Parses `manifest.json`.
    ///
    /// - Throws: `unsupportedVersion`, or `badManifest` with the cause.
    public init(decoding bytes: [UInt8]) throws(LedgerError) {
        struct Version: Decodable { var version: Int }
        do {
            let version = try JSONCoding.decode(Version.self, from: bytes).version
            guard version <= Manifest.currentVersion else {
                throw LedgerError(.unsupportedVersion, detail: "format \(version)")
            }
            self = try JSONCoding.decode(Manifest.self, from: bytes)
        } catch let error as LedgerError {
            throw error
        } catch {
            throw LedgerError(.badManifest, detail: "it is not a manifest")
        }
        guard checksum == computedChecksum() else {
            throw LedgerError(.badManifest, detail: "its checksum does not fit")
        }
        checksum = 0
        guard campaign.utf8.count == 16, UInt64(campaign, radix: 16) != nil else {
            throw LedgerError(.badManifest, detail: "the campaign is not 16 hexadecimal digits")
        }
        if let value = impossibleValue {
            throw LedgerError(.badManifest, detail: "no run can have written \(value)")
        }
    }

    /// Returns the manifest with the devices masked in all its texts.
    public func masked(_ devices: inout DeviceSet) -> Manifest {
        var bytes = json(isPretty: false)
        guard devices.maskTokens(in: &bytes),
            let masked = try? JSONCoding.decode(Manifest.self, from: bytes)
        else { return self }
        return masked
    }

    private func computedChecksum() -> UInt32 {
        var copy = self
        copy.checksum = 0
        let bytes = copy.json(isPretty: false)
        // SAFETY: JSON is never empty, and exactly its bytes are read.
        return unsafe bytes.withUnsafeBufferPointer { buffer in
            unsafe libdeflate_crc32(0, buffer.baseAddress!, buffer.count)
        }
    }

    private func json(isPretty: Bool) -> [UInt8] {
        // Strings, integers and booleans can always be encoded.
        try! JSONCoding.encode(self, isPretty ? .pretty : [])
    }
}
