internal import BroadsideLedgerFormat
public import BroadsideLedgers
public import BroadsideSupport

/// A report about many ledgers.
public struct NightsReport {
    private(set) var nights: [Night] = []

    /// Reads the ledgers one after the other. The memory in use grows with the number of ledgers,
    /// not with the number of rows.
    ///
    /// - Parameters:
    ///   - collection: The ledgers.
    ///   - own: Path of the ledger that this process's own run wrote; nil if there is none. The run
    ///     has ended, but the process may still hold the ledger's lock.
    public init(_ collection: LedgerCollection, own: String? = nil) throws(BroadsideError) {
        for path in collection.paths {
            // This may follow a run, whose stop signals may still be pending.
            try SignalWatch.stopIfRequested()
            nights.append(try Night.read(path, isOurs: path == own))
        }
        nights = Self.sorted(Self.withoutMerged(Self.markingCopies(nights)))
    }

    /// Removes shards and parts that are also in a merged ledger, because the merged ledger already
    /// counts their rows. If all of them are here, and a run has started in one since the merge, the
    /// merged ledger is marked as a copy instead.
    ///
    /// - Parameter nights: Nights with their copies marked.
    static func withoutMerged(_ nights: [Night]) -> [Night] {
        var marked = nights
        var merged: Set<String> = []
        for (index, night) in nights.enumerated() where !night.isCopy && !night.mergedKeys.isEmpty {
            let originals = nights.filter { original in
                original.figures != nil && original.key.map(night.mergedKeys.contains) == true
            }
            let newest = originals.max {
                $0.lastStartedAtMilliseconds < $1.lastStartedAtMilliseconds
            }
            if let newest, newest.lastStartedAtMilliseconds > night.lastStartedAtMilliseconds,
                Set(originals.compactMap(\.key)) == night.mergedKeys
            {
                marked[index].markAsCopy(of: newest)
            } else {
                merged.formUnion(night.mergedKeys)
            }
        }
        return marked.filter { night in night.key.map { !merged.contains($0) } ?? true }
    }

    /// Value that all copies of a ledger share: its parts or shards, and its first start.
    private struct Identity: Hashable {
        var keys: Set<String>
        var start: UInt64?

        /// nil if the ledger could not be read.
        init?(_ night: Night) {
            keys = night.key.map { [$0] } ?? night.mergedKeys
            start = night.startedAtMilliseconds
            guard night.figures != nil, !keys.isEmpty else { return nil }
        }
    }

    /// Marks all copies of a ledger except one, whose rows are counted: the copy with the latest
    /// run. If several have that run, the one with the most settled rows is counted.
    static func markingCopies(_ nights: [Night]) -> [Night] {
        func age(_ night: Night) -> (UInt64, UInt64) {
            (night.lastStartedAtMilliseconds, night.figures?.counts.settled ?? 0)
        }
        var counted: [Identity: Int] = [:]
        for (index, night) in nights.enumerated() {
            guard let identity = Identity(night) else { continue }
            if let known = counted[identity], age(nights[known]) >= age(night) { continue }
            counted[identity] = index
        }
        var marked = nights
        for (index, night) in nights.enumerated() {
            guard let identity = Identity(night), let original = counted[identity],
                original != index
            else { continue }
            marked[index].markAsCopy(of: nights[original])
        }
        return marked
    }

    /// Sorts nights: those without a date first, then all others, newest first.
    static func sorted(_ nights: [Night]) -> [Night] {
        nights.sorted {
            let (first, second) = (
                $0.startedAtMilliseconds ?? .max, $1.startedAtMilliseconds ?? .max
            )
            return (first, $0.path) > (second, $1.path)
        }
    }

    /// Writes the page.
    ///
    /// - Parameters:
    ///   - output: Destination of the page's bytes.
    ///   - path: Path of `output`. Links are relative to the folder of this path. If the path is
    ///     nil, links are relative to the working directory.
    public func write(to output: OutputFile, at path: String?) throws(BroadsideError) {
        var folder = "."
        if let path, path != "-", let parts = path.parts(atLast: "/") {
            folder = parts.before.isEmpty ? "/" : String(parts.before)
        }
        let page = NightsPage(
            nights: Self.linked(nights, from: absolutePath(folder)),
            createdAtMilliseconds: Clock.now().wallMilliseconds)
        try output.write(page.html)
        try output.finish()
    }

    /// Links each night to its own page. If several nights have the same path for their page, only
    /// the newest one is linked to it.
    static func linked(_ nights: [Night], from folder: String) -> [Night] {
        var taken: Set<String> = []
        var nights = nights
        for index in nights.indices {
            guard let page = RelativeLink.file(among: nights[index].pagePaths),
                taken.insert(page).inserted
            else { continue }
            nights[index].link = RelativeLink.text(to: page, from: folder)
        }
        return nights
    }

    /// Warnings about ledgers that are old copies.
    public var warnings: [String] { nights.compactMap(\.warning) }

    /// Returns the error about the unreadable ledgers; nil if all were read. It is thrown after the
    /// page or the JSON about the other ledgers is written.
    ///
    /// - Parameter isJSON: Whether JSON was written.
    public func failure(isJSON: Bool) -> BroadsideError? {
        let unreadable = nights.compactMap { night -> String? in
            guard case .unreadable(let problem) = night.content else { return nil }
            return problem
        }
        guard let first = unreadable.first else { return nil }
        let count = grouped(unreadable.count)
        return BroadsideError(
            "\(count) of \(grouped(nights.count)) ledgers can't be read (the "
                + "\(isJSON ? "JSON" : "page") says which): "
                + "\(unreadable.count > 1 ? "the first: " : "")\(first)",
            exitCode: ExitCode.disk)
    }
}
