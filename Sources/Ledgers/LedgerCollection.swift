public import BroadsideSupport
internal import Glibc

/// Ledgers in directories: each directory is a ledger, or has ledgers immediately below it.
public struct LedgerCollection {
    /// The ledgers' directories, each once.
    public private(set) var paths: [String] = []
    /// Directories below the named ones that hold no ledger.
    public private(set) var leftOut: [String] = []
    /// Directories below the named ones whose content this user may not see: `lost+found`, or a ledger of
    /// another user.
    public private(set) var closed: [String] = []

    /// The most ledgers of a collection.
    public static let ledgersLimit = 4096
    /// Directories that a note names.
    private static let namedLimit = 5

    /// - Parameters:
    ///   - directories: What the user named.
    ///   - option: The option that asked for them, for messages; nil: the command itself did.
    ///   - mayBeEmpty: Whether a directory may hold no ledger, or not be there.
    /// - Throws: With exit code 2, if one of them holds no ledger, or if there are too many.
    public init(
        _ directories: [String], option: String?, mayBeEmpty: Bool = false
    ) throws(BroadsideError) {
        var seen: [FileIdentity] = []
        var found: [String] = []
        for directory in directories {
            found += try ledgers(of: directory, option: option, mayBeEmpty: mayBeEmpty)
            guard found.count <= Self.ledgersLimit else {
                throw refusal(
                    option,
                    "\(directory): more than \(grouped(Self.ledgersLimit)) ledgers: name fewer "
                        + "directories")
            }
        }
        for path in found {
            guard let identity = FileIdentity(path: path) else {
                let failure = unusable(option, path, errno: errno)
                guard failure.exitCode != ExitCode.disk else { throw failure }
                continue
            }
            guard !seen.contains(identity) else { continue }
            seen.append(identity)
            paths.append(path)
            assert(paths.count == seen.count, "each ledger has one path")
        }
    }

    private func refusal(_ option: String?, _ problem: String) -> BroadsideError {
        option.map { .usage($0, problem) } ?? .request(problem)
    }

    private func unusable(
        _ option: String?, _ directory: String, errno number: Int32
    ) -> BroadsideError {
        let name = option.map { InputName(directory, option: $0) } ?? InputName(directory)
        return .file(name, errno: number, "name a directory of ledgers")
    }

    /// Whether what a directory holds is kept from this user: it may be a ledger, and its reader says why
    /// it can't be read.
    private static func isClosed(_ directory: String) -> Bool {
        SystemCall.names(inDirectory: directory) == nil && errno == EACCES
    }

    /// The ledger that a directory is, or those below it.
    private mutating func ledgers(
        of directory: String, option: String?, mayBeEmpty: Bool
    ) throws(BroadsideError) -> [String] {
        guard let information = SystemCall.status(directory) else {
            if mayBeEmpty, errno == ENOENT { return [] }
            throw unusable(option, directory, errno: errno)
        }
        guard information.st_mode & S_IFMT == S_IFDIR else {
            throw refusal(option, "\(directory) is not a directory: name a directory of ledgers")
        }
        if try LedgerDirectory.isBegunLedger(directory) || Self.isClosed(directory) {
            return [directory]
        }
        guard let names = SystemCall.names(inDirectory: directory) else {
            throw unusable(option, directory, errno: errno)
        }
        let folder =
            directory == "." ? "" : directory.hasSuffix("/") ? directory : directory + "/"
        var (ledgers, shut, others): ([String], [String], [String]) = ([], [], [])
        for path in names.sorted().map({ folder + $0 }) where try isDirectoryPath(path) {
            if try LedgerDirectory.isBegunLedger(path) {
                ledgers.append(path)
            } else if Self.isClosed(path) {
                shut.append(path)
            } else {
                others.append(path)
            }
        }
        // If there is nothing else, their reader says why they can't be read.
        if ledgers.isEmpty, !shut.isEmpty { return shut }
        guard !ledgers.isEmpty || mayBeEmpty else {
            throw refusal(
                option,
                "\(directory) is not a ledger, and there is none immediately below it: name a "
                    + "directory of ledgers")
        }
        closed += shut
        leftOut += others
        return ledgers
    }

    /// Which directories are left out, in one line; nil: none.
    public var note: String? { line("left out, no ledger is in it", leftOut) }

    /// Which directories are left out because this user may not read them, in one line; nil: none.
    public var closedNote: String? {
        line("left out, \(describe(errno: EACCES)) (a ledger there is its owner's)", closed)
    }

    private func line(_ what: String, _ directories: [String]) -> String? {
        guard !directories.isEmpty else { return nil }
        let rest = directories.count - Self.namedLimit
        return "\(what): " + directories.prefix(Self.namedLimit).joined(separator: ", ")
            + (rest > 0 ? " and \(rest) more" : "")
    }

    /// Checks that an output takes the place of no ledger's file and of no list.
    public func checkOutput(_ path: String?) throws(BroadsideError) {
        guard let path else { return }
        try OutputRule(inputs: [], ledgers: paths).check(option: "output", path: path)
    }
}

extension LedgerDirectory {
    /// Whether a directory holds a ledger whose campaign was begun.
    ///
    /// - Throws: Exit code 5, where a disk fails: a ledger is not left out because of that.
    package static func isBegunLedger(_ path: String) throws(BroadsideError) -> Bool {
        let content: Content
        do throws(BroadsideError) {
            content = try unlocked(path).content()
        } catch {
            guard error.exitCode != ExitCode.disk else { throw error }
            return try isLedger(path)
        }
        return content == .ledger || content == .lostManifest
    }
}
