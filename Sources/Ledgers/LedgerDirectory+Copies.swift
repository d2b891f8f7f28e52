internal import BroadsideLedgerFormat
package import BroadsideSupport
internal import Glibc

// A merged ledger holds copies of ledgers. A run in a copy and one in its original send the same rows.

extension LedgerDirectory {
    /// In a copy that `ledger merge` made: the path of the ledger that it was copied from.
    static let originName = "copy-of"
    /// The most bytes of such a path.
    private static let originLimit = 1 << 14
    /// So many originals are named in a message.
    private static let namedOriginals = 3

    /// The path of the ledger that this one was copied from by `ledger merge`; nil: it is not a copy.
    package func origin() throws(BroadsideError) -> String? {
        guard try fileExists("\(path)/\(Self.originName)") else { return nil }
        let bytes = try readSmallFile(Self.originName, limit: Self.originLimit)
        return String(decoding: bytes.prefix { $0 != 0x0A }, as: UTF8.self)
    }

    /// The ledger that a resume has to name: this one, or the one that it was copied from.
    package var resumePath: String { (try? origin()) ?? path }

    /// Makes a copy known as one, before there is anything in it that a run could continue.
    ///
    /// - Parameter source: The ledger that is copied, which may be a copy itself.
    func markAsCopy(of source: LedgerDirectory) throws(BroadsideError) {
        let origin = try source.origin() ?? absolutePath(source.path)
        try replace(Self.originName, with: Array("\(origin)\n".utf8))
    }

    /// Refuses a run in a merged ledger, and in a copy that lies in one.
    ///
    /// - Throws: Exit code 2, with the ledgers to resume.
    func refuseCopies() throws(BroadsideError) {
        if try hasManifest, try readManifest().shards != nil {
            throw .usage(
                "ledger", "\(path) was merged from several: resume each of them\(try originals())")
        }
        let origin = try origin()
        if origin == nil, try !liesInMerged { return }
        throw .usage(
            "ledger",
            "\(path) is a copy in a merged ledger, and a run in it would send rows that the original "
                + "sends as well: resume \(origin ?? "the ledger that it was copied from")")
    }

    /// The ledgers that a merged one was made of: those that are not finished, or all.
    private func originals() throws(BroadsideError) -> String {
        let ledgers = try ledgers()
        let open = ledgers.filter { !$0.manifest.isFinished }
        var paths: [String] = []
        for ledger in open.isEmpty ? ledgers : open {
            guard let origin = try ledger.directory.origin() else { return "" }
            paths.append(origin)
        }
        return ": " + Self.listed(paths)
    }

    /// The first of some paths, and how many others there are.
    static func listed(_ paths: [String]) -> String {
        let rest = paths.count - namedOriginals
        return paths.prefix(namedOriginals).joined(separator: ", ")
            + (rest > 0 ? " and \(rest) more" : "")
    }

    /// Whether the folder of this ledger is a merged ledger that has it: earlier versions marked no copy.
    ///
    /// - Throws: Exit code 5, where a disk fails.
    private var liesInMerged: Bool {
        get throws(BroadsideError) {
            guard let (folder, name) = absolutePath(path).parts(atLast: "/") else { return false }
            let outer = Self.unlocked(String(folder))
            guard try fileCanBeSeen("\(folder)/\(Self.manifestName)"),
                let shards = (try? outer.readManifest())?.shards
            else { return false }
            return shards.contains(String(name))
        }
    }
}
