internal import BroadsidePrimitives
internal import BroadsideRows

/// The limits on the values of a manifest. The checksum proves only that values are unchanged. It
/// does not prove that sums can't overflow, or that file names stay within the folder.
extension Manifest {
    /// Maximum value of a counter. The sum over all parts of a campaign then fits in 64 bits.
    private static let countMax: UInt64 = 1 << 48
    /// Maximum number of runs of a campaign.
    private static let runsMax: UInt32 = 1 << 30

    /// Description of the first value that no run can have written; nil if there is none.
    var impossibleValue: String? {
        let checks: [(name: String, isPossible: Bool)] = [
            ("its version", version > 0),
            ("its times", hasPossibleTimes),
            ("its runs", hasPossibleRuns),
            ("its numbers of rows", hasPossibleRowCounts),
            ("its erased rows", erasedRows?.isPossible ?? true),
            ("its part of the list", part.map(Self.isPossible) ?? true),
            ("its part of the campaign", identity.part.map(Self.isPossible) ?? true),
            ("its arms", identity.split?.isPossible ?? true),
            ("the list's size", identity.listByteCount ?? 0 <= LedgerFormat.positionMax),
            ("its counters", hasPossibleCounters),
            ("its shards", shards?.allSatisfy(Self.isNameInFolder) ?? true),
        ]
        return checks.first { !$0.isPossible }?.name
    }

    private var hasPossibleTimes: Bool {
        firstStartedAtMilliseconds <= LedgerFormat.millisecondsMax
            && epochs.allSatisfy { $0.startedAtMilliseconds <= LedgerFormat.millisecondsMax }
    }

    private var hasPossibleRowCounts: Bool {
        rowCount ?? 0 <= LedgerFormat.rowLimit && canaryRowCount ?? 0 <= LedgerFormat.rowLimit
    }

    private var hasPossibleCounters: Bool {
        [
            counters.retries, counters.shortened ?? 0, counters.reconnects, counters.connections,
        ].allSatisfy { $0 <= Self.countMax }
    }

    private var hasPossibleRuns: Bool {
        var last: UInt32 = 0
        for epoch in epochs {
            guard epoch.number > last, epoch.number <= Self.runsMax,
                Int(epoch.segmentCount ?? 0) <= DurablePosition.countMax,
                epoch.segments?.allSatisfy({ $0.byteCount <= LedgerFormat.positionMax }) ?? true,
                epoch.stop?.count ?? 0 <= Self.countMax, epoch.stop?.total ?? 0 <= Self.countMax
            else { return false }
            last = epoch.number
        }
        return true
    }

    private static func isPossible(_ part: ListExtent) -> Bool {
        let end = part.endRow ?? LedgerFormat.rowLimit
        let byteEnd = part.endByteOffset ?? LedgerFormat.positionMax
        return part.firstRow <= end && end <= LedgerFormat.rowLimit
            && part.byteOffset <= byteEnd && byteEnd <= LedgerFormat.positionMax
            && part.firstLine <= LedgerFormat.positionMax
    }

    private static func isPossible(_ part: CampaignPart) -> Bool {
        CampaignPart(index: part.index, count: part.count) != nil
    }

    /// Returns whether a name is a plain file name, which cannot lead to another folder.
    private static func isNameInFolder(_ name: String) -> Bool {
        !name.isEmpty && name != "." && name != ".." && !name.utf8.contains(UInt8(ascii: "/"))
            && !name.utf8.contains(0)
    }

    /// Returns a manifest's bytes with the right checksum, so that tests can use invalid values;
    /// nil if the bytes are not a manifest.
    package static func sealed(_ bytes: [UInt8]) -> [UInt8]? {
        (try? JSONCoding.decode(Manifest.self, from: bytes))?.encoded()
    }
}
