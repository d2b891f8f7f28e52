public import BroadsideLedgers
public import BroadsideSupport

/// The page about many ledgers.
public struct NightsReport {
    private(set) var nights: [Night] = []

    /// Reads the ledgers one after the other; memory is per ledger, never per row.
    public init(_ collection: LedgerCollection) throws(BroadsideError) {
        for path in collection.paths {
            // After a run, whose signals wait to be taken.
            try SignalWatch.stopIfRequested()
            nights.append(try Night.read(path))
        }
        nights = Self.sorted(nights)
    }

    /// Newest first; those without a date before all.
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
    ///   - output: Takes the page's bytes.
    ///   - path: Where `output` goes: links count from there; nil: from the working directory.
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

    /// Links each night to its own page. A page that several nights may have written is the newest's.
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

    /// Says that ledgers could not be read, once the page about the others is written; nil: all were.
    public var failure: BroadsideError? {
        let unreadable = nights.compactMap { night -> String? in
            guard case .unreadable(let problem) = night.content else { return nil }
            return problem
        }
        guard let first = unreadable.first else { return nil }
        let count = grouped(unreadable.count)
        return BroadsideError(
            "\(count) of \(grouped(nights.count)) ledgers can't be read, the page says which: "
                + "\(unreadable.count > 1 ? "the first: " : "")\(first)",
            exitCode: ExitCode.disk)
    }
}
