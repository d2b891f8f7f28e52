public import BroadsideRows
internal import CBroadsideDeflate
internal import FoundationEssentials

/// What `manifest.json` says: whose ledger this is, which runs wrote it, and what they must have
/// left.
///
/// It is written beside and renamed: before a run's first segment is made, once all of them are
/// synced and nothing is reserved yet, and when the run ends.
/// A run that takes up a ledger syncs the segments that it found, records their lengths and only
/// then acts on what it read: nothing that it relied on can be lost unnoticed later on.
public struct Manifest: Codable, Hashable, Sendable {
    /// The version of the format that this code writes. It rises with each field that is added: a version
    /// that does not know it could not tell the checksum's fit.
    static let currentVersion = 2

    /// One run of the campaign.
    public struct Epoch: Codable, Hashable, Sendable {
        /// From 1.
        public var number: UInt32
        /// When it started, in milliseconds since 1970.
        public var startedAtMilliseconds: UInt64
        /// What it left, once it ended orderly or a later run took up its ledger; nil before.
        public var segments: [SegmentLength]?
        /// The row behind the last one that it was to look at; nil: all, or not known.
        var rowsLimit: UInt64?
        /// Whether each of its segments reserves rows in list order: not while a canary comes first;
        /// nil: not known.
        var isInListOrder: Bool?
        /// How many segments it made before its first row; nil: not known.
        var segmentCount: UInt16?
        /// Whether these segments are on disk, each with its header: nothing is reserved before, and
        /// from then on one that is not there is lost. nil: not known.
        var segmentsAreMade: Bool?
        /// Why it ended; nil while it has not, and where an earlier version wrote it.
        public var stop: StopRecord?

        /// A run that has not ended.
        public init(number: UInt32, startedAtMilliseconds: UInt64) {
            self.number = number
            self.startedAtMilliseconds = startedAtMilliseconds
        }
    }

    /// Numbers that cumulate over runs and are not to be had from the segments.
    public struct Counters: Codable, Hashable, Sendable {
        /// Requests sent again.
        public var retries: UInt64 = 0
        /// Connections made in place of lost ones.
        public var reconnects: UInt64 = 0
        /// Connections made in all.
        public var connections: UInt64 = 0

        /// All zero.
        init() {}
    }

    /// The format's version.
    private(set) var version = Manifest.currentVersion
    /// The campaign: 16 hexadecimal digits.
    public private(set) var campaign: String
    /// What makes it the same campaign.
    public var identity: CampaignIdentity
    /// When the first run started, in milliseconds since 1970; relative times count from here.
    public var firstStartedAtMilliseconds: UInt64
    /// The apns-expiration in seconds since 1970, fixed at the first start.
    public var expirationSeconds: UInt64?
    /// What people call the campaign, as the latest run that named it did; nil: nothing.
    public var name: String?
    /// The campaign's labels by key, as the latest run that gave any did; nil: none.
    public var labels: [String: String]?
    /// Where the list was read, nil for one that was spooled into the ledger.
    public var listPath: String?
    /// The part of the list the campaign is about, where it is cut by bytes; nil: all of it.
    public var part: ListExtent?
    /// For a merged ledger: the directories below, each of which holds a shard's; nil for one of
    /// its own.
    public var shards: [String]?
    /// Whether the canary was let pass.
    public var canaryPassed = false
    /// How many rows the canary is to have; while it has not passed, no others were reserved. nil
    /// where the campaign began without.
    public var canaryRowCount: UInt64?
    /// The runs, in order.
    public private(set) var epochs: [Epoch] = []
    /// Whether every row is settled.
    public private(set) var isFinished = false
    /// The row behind the last one, once the list or the part was read to its end, or to
    /// `rowsLimit`.
    public var rowCount: UInt64?
    /// The row behind the last one that the latest run was to look at; nil: all.
    public var rowsLimit: UInt64?
    /// `ListHash` of the whole list, decoded: from the start on where all of it was read before the
    /// first row was sent, else once a run that read it to its end has settled every row.
    public var listHash: String?
    /// `ListHash` of the list's header; nil where its format has none.
    public var headerHash: String?
    /// What cumulates over runs.
    public var counters = Counters()
    /// CRC-32 of the encoding in which this is 0.
    private var checksum: UInt32 = 0

    /// Describes a new campaign, which has no run yet.
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

    /// The campaign's number, as apns-ids have it.
    public var campaignNumber: UInt64 { UInt64(campaign, radix: 16)! }

    /// Begins a run.
    ///
    /// - Parameters:
    ///   - milliseconds: now, since 1970.
    ///   - lengths: what the run before left, as `LedgerIndex.segmentLengths(epoch:)` of its number
    ///     says; kept only where that run did not record it itself.
    /// - Returns: the run's number.
    public mutating func beginEpoch(
        atMilliseconds milliseconds: UInt64, previousLengths lengths: [SegmentLength] = []
    ) -> UInt32 {
        if let last = epochs.indices.last, epochs[last].segments == nil {
            epochs[last].segments = lengths
        }
        version = Manifest.currentVersion
        let number = (epochs.last?.number ?? 0) + 1
        assert(epochs.allSatisfy { $0.number < number }, "the numbers of epochs only grow")
        epochs.append(Epoch(number: number, startedAtMilliseconds: milliseconds))
        isFinished = false
        return number
    }

    /// Ends the latest run orderly: its segments are written and synced.
    ///
    /// - Parameters:
    ///   - lengths: what it left.
    ///   - isFinished: whether every row of the list is settled.
    ///   - stop: why it ended.
    public mutating func endEpoch(
        lengths: [SegmentLength], isFinished: Bool, stop: StopRecord? = nil
    ) {
        precondition(!epochs.isEmpty, "no run was begun")
        assert(Set(lengths.map(\.reactor)).count == lengths.count, "each segment has one length")
        epochs[epochs.count - 1].segments = lengths
        epochs[epochs.count - 1].stop = stop
        self.isFinished = isFinished
    }

    /// Which rows of the list the campaign is about.
    public var rows: CampaignRows {
        CampaignRows(part: part ?? .wholeList, selection: identity.selection, limit: rowsLimit)
    }

    /// How many rows the campaign has.
    ///
    /// - Parameters:
    ///   - ledger: what its ledger says.
    ///   - end: the row behind the last one that was looked at; nil: as the manifest has it.
    /// - Returns: nil where nobody knows where the list ends.
    public func rowCount(with ledger: LedgerSummary, upTo end: UInt64? = nil) -> UInt64? {
        (end ?? rowCount).map { rows.count(upTo: $0) + ledger.beyondLimitCount }
    }

    /// Takes note of how far a run looks, before it begins.
    public mutating func look(upTo limit: UInt64?) {
        if extendsBeyond(limit: limit) {
            rowCount = nil
        } else if let limit, let known = rowCount {
            rowCount = min(known, limit)
        }
        rowsLimit = limit
    }

    /// Takes note of how the run that begins goes along the list.
    ///
    /// - Parameters:
    ///   - isInListOrder: whether each of its segments reserves rows in list order.
    ///   - segmentCount: how many it makes.
    public mutating func recordRunShape(isInListOrder: Bool, segmentCount: Int) {
        guard let last = epochs.indices.last else { return }
        epochs[last].segmentCount = UInt16(clamping: segmentCount)
        epochs[last].segmentsAreMade = false
        epochs[last].isInListOrder = isInListOrder
        epochs[last].rowsLimit = rowsLimit
    }

    /// Takes note that all segments of the run that begins are on disk: it may reserve rows now.
    public mutating func recordCreatedSegments() {
        precondition(epochs.last?.segmentCount != nil, "the run's course is not noted")
        epochs[epochs.count - 1].segmentsAreMade = true
    }

    /// Of a copy that may be older than the ledger nobody knows whether the latest run had begun: it
    /// is taken to have done so.
    public mutating func assumeSegmentsMade() {
        for epoch in epochs.indices where epochs[epoch].segmentsAreMade == false {
            epochs[epoch].segmentsAreMade = true
        }
    }

    /// Describes runs anew, as a repair found them.
    mutating func replaceEpochs(_ found: [Epoch], isFinished: Bool) {
        assert(
            zip(found, found.dropFirst()).allSatisfy { $0.number < $1.number },
            "the numbers of epochs only grow")
        version = Manifest.currentVersion
        epochs = found
        self.isFinished = isFinished
    }

    /// Takes note of whether every row is settled, where that is not a run's word.
    mutating func finish(_ isFinished: Bool) { self.isFinished = isFinished }

    /// Whether a run with this limit would look at rows that the latest, finished one did not.
    public func extendsBeyond(limit: UInt64?) -> Bool {
        guard let rowsLimit, let rowCount, rowCount >= rowsLimit else { return false }
        return limit.map { $0 > rowsLimit } ?? true
    }

    /// What runs left, for `LedgerIndex`.
    public var recordedLengths: [UInt32: [SegmentLength]] {
        var lengths: [UInt32: [SegmentLength]] = [:]
        for epoch in epochs { lengths[epoch.number] = epoch.segments }
        return lengths
    }

    /// The bytes as another version of the format has them, for tests.
    func encoded(version: Int) -> [UInt8] {
        var copy = self
        copy.version = version
        return copy.encoded()
    }

    /// The bytes of `manifest.json`.
    public func encoded() -> [UInt8] {
        var copy = self
        copy.checksum = copy.computedChecksum()
        return copy.json(isPretty: true) + [0x0A]
    }

    /// Reads `manifest.json`.
    ///
    /// - Throws: `unsupportedVersion`, or `badManifest` saying why.
    public init(decoding bytes: [UInt8]) throws(LedgerError) {
        struct Version: Decodable { var version: Int }
        do {
            let data = Data(bytes)
            let version = try JSONDecoder().decode(Version.self, from: data).version
            guard version <= Manifest.currentVersion else {
                throw LedgerError(.unsupportedVersion, detail: "format \(version)")
            }
            self = try JSONDecoder().decode(Manifest.self, from: data)
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

    private func computedChecksum() -> UInt32 {
        var copy = self
        copy.checksum = 0
        let bytes = copy.json(isPretty: false)
        // SAFETY: JSON is never empty, and as many bytes are read as there are.
        return unsafe bytes.withUnsafeBufferPointer { buffer in
            unsafe libdeflate_crc32(0, buffer.baseAddress!, buffer.count)
        }
    }

    private func json(isPretty: Bool) -> [UInt8] {
        let encoder = JSONEncoder()
        encoder.outputFormatting =
            isPretty
            ? [.sortedKeys, .withoutEscapingSlashes, .prettyPrinted]
            : [.sortedKeys, .withoutEscapingSlashes]
        // Only strings, integers and booleans: there is nothing that could not be encoded.
        return Array(try! encoder.encode(self))
    }
}

extension Manifest.Epoch {
    /// Whether it reserved nothing for sure: it was ended before its segments were on disk.
    package var hasReservedNothing: Bool { segments == nil && segmentsAreMade == false }

    /// Whether it did not end orderly, and each of its segments must be there with its header.
    var mustHaveSegments: Bool { segments == nil && segmentsAreMade == true }

    /// Reactors of a run that did not end orderly whose segments are not there. Versions that do not
    /// note it when all are made make them before the first byte is written to any of them.
    func missingReactors(among all: [LedgerSegment]) -> [UInt16] {
        guard segments == nil, !hasReservedNothing, let segmentCount else { return [] }
        let own = all.filter { $0.epoch == number }
        guard mustHaveSegments || own.contains(where: { $0.bytes.byteCount > 0 }) else { return [] }
        let there = Set(own.map(\.reactor))
        return (0..<segmentCount).filter { !there.contains($0) }
    }
}

extension LedgerIndex {
    /// Reads the segments that a manifest accounts for.
    ///
    /// - Throws: as the other initialiser does, and `strangeSegment`.
    public init(segments: [LedgerSegment], manifest: Manifest) throws(LedgerError) {
        let known = Set(manifest.epochs.map(\.number))
        for segment in segments where !known.contains(segment.epoch) {
            throw LedgerError(.strangeSegment, segment: segment.name)
        }
        for epoch in manifest.epochs {
            guard let missing = epoch.missingReactors(among: segments).first else { continue }
            throw LedgerError(
                .missingSegment,
                segment: LedgerFormat.segmentName(epoch: epoch.number, reactor: missing))
        }
        try self.init(
            segments: segments, campaign: manifest.segmentNumber,
            recordedLengths: manifest.recordedLengths,
            headedRuns: Set(manifest.epochs.filter(\.mustHaveSegments).map(\.number)),
            rows: manifest.rows)
    }
}
