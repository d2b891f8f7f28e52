package import BroadsideLedgerFormat
package import BroadsideSupport
internal import Glibc

// A merged ledger contains copies of ledgers. If runs continued both a copy and its original, they
// would send the same rows.

extension LedgerDirectory {
    /// File in a copy made by `ledger merge`, with the path of the original ledger.
    static let originName = "copy-of"
    /// Maximum length of the file `copy-of`, in bytes.
    private static let originLimit = 1 << 14
    /// Maximum number of original ledgers that a message names.
    private static let namedOriginals = 3

    /// Returns the path of the ledger from which `ledger merge` copied this one; nil if it is not a
    /// copy.
    package func origin() throws(BroadsideError) -> String? {
        guard try fileExists("\(path)/\(Self.originName)") else { return nil }
        let bytes = try readSmallFile(Self.originName, limit: Self.originLimit)
        return String(decoding: bytes.prefix { $0 != 0x0A }, as: UTF8.self)
    }

    /// Returns the path of the ledger to resume: the newer copy if claims show that this ledger is
    /// an old one, the original of a copy in a merged ledger, or this ledger.
    package func resumePath(_ manifest: Manifest) throws(BroadsideError) -> String {
        if let newer = oldCopy(manifest)?.newer { return newer }
        return try origin() ?? path
    }

    /// Marks this ledger as a copy. Called before it contains anything that a run could continue.
    ///
    /// - Parameter source: The copied ledger, which may be a copy itself.
    func markAsCopy(of source: LedgerDirectory) throws(BroadsideError) {
        assert(source.path != path, "no ledger is a copy of itself")
        let origin = try source.origin() ?? absolutePath(source.path)
        try replace(Self.originName, with: Array("\(origin)\n".utf8))
    }

    /// Refuses a run in a merged ledger, or in one of the copies that it contains.
    ///
    /// - Throws: Exit code 2. The message names the ledgers to resume.
    func refuseCopies() throws(BroadsideError) {
        if try hasManifest, try readManifest().shards != nil {
            throw .usage(
                "ledger",
                "\(path) was merged from several ledgers: resume each of them\(try originals())")
        }
        let origin = try origin()
        if origin == nil, try !liesInMerged { return }
        // The manifest of a copy may be damaged.
        let newer = (try? readManifest()).flatMap { oldCopy($0)?.newer }
        throw .usage(
            "ledger",
            "\(path) is a copy in a merged ledger, and a run in it would send "
                + "rows that the original also sends: resume "
                + "\(newer ?? origin ?? "the ledger that it was copied from")")
    }

    /// Returns a list of a merged ledger's originals, or of newer copies of them: first the
    /// unfinished ones. A run with `--retry` may have to reopen rows in the finished ones, too.
    private func originals() throws(BroadsideError) -> String {
        var open: [String] = []
        var finished: [String] = []
        for ledger in try ledgers() {
            guard try ledger.directory.origin() != nil else { return "" }
            let path = try ledger.directory.resumePath(ledger.manifest)
            if ledger.manifest.isFinished { finished.append(path) } else { open.append(path) }
        }
        guard !open.isEmpty, !finished.isEmpty else {
            return ": " + Self.listed(open + finished)
        }
        return ": \(Self.listed(open)); with --retry also \(Self.listed(finished))"
    }

    /// Returns a text with the first few paths, and the number of further paths.
    static func listed(_ paths: [String]) -> String {
        let rest = paths.count - namedOriginals
        return paths.prefix(namedOriginals).joined(separator: ", ")
            + (rest > 0 ? " and \(rest) more" : "")
    }

    /// Whether this ledger is a copy in the directory of a merged ledger. Earlier versions did not
    /// mark copies.
    ///
    /// - Throws: Exit code 5 if a disk fails.
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
