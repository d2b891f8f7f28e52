public import BroadsideSupport
internal import Glibc

/// Ledgers in directories. Each directory is a ledger, or has ledgers up to `levelsLimit` levels
/// below it, such as the nights of several campaigns (`DIR/NAME/DATE`).
public struct LedgerCollection {
    /// Directories of the ledgers, without duplicates.
    public private(set) var paths: [String] = []
    /// Directories that contain no ledger, below the directories that the user named.
    public private(set) var leftOut: [String] = []
    /// Directories, below the named ones, that this user has no permission to list: `lost+found`,
    /// or a ledger of another user.
    public private(set) var closed: [String] = []
    /// Directories of runs that ended before their campaign began, if these are searched for.
    private(set) var prepared: [String] = []
    private let findsPrepared: Bool
    /// The directories in `closed` that may be ledgers, or have ledgers below them.
    public var closedLedgers: [String] { closed.filter(Self.mayHoldLedgers) }

    /// Maximum number of ledgers in a collection.
    public static let ledgersLimit = 4096
    /// Maximum number of levels of directories that are searched below a named directory.
    public static let levelsLimit = 3
    /// Maximum number of directories that are searched.
    public static let directoriesLimit = 65_536
    /// Directories searched so far.
    private var searchedCount = 0
    /// Maximum number of directories that a note names.
    private static let namedLimit = 5

    /// - Parameters:
    ///   - directories: Directories that the user named.
    ///   - option: Name of the option with these directories, for messages; nil if they are the
    ///     command's arguments.
    ///   - mayBeEmpty: Whether a directory may contain no ledger or be missing.
    /// - Throws: Exit code 2 if a directory contains no ledger although it must, or if there are
    ///   too many ledgers or directories.
    public init(
        _ directories: [String], option: String?, mayBeEmpty: Bool = false
    ) throws(BroadsideError) {
        try self.init(directories, option: option, mayBeEmpty: mayBeEmpty, findsPrepared: false)
    }

    /// - Parameter findsPrepared: Whether to search also for directories of runs that ended before
    ///   their campaign began.
    init(
        _ directories: [String], option: String?, mayBeEmpty: Bool = false, findsPrepared: Bool
    ) throws(BroadsideError) {
        self.findsPrepared = findsPrepared
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

    /// Whether this user has no permission to list a directory. Such a directory may be a ledger;
    /// the code that reads the ledger then reports why it can't be read.
    private static func isClosed(_ directory: String) -> Bool {
        guard SystemCall.names(inDirectory: directory) != nil else { return errno == EACCES }
        // The names in a directory can be listed without the permission to use them.
        return SystemCall.status("\(directory)/.") == nil && errno == EACCES
    }

    /// Whether a directory may be a ledger or contain ledgers, by its name. Hidden directories are
    /// not searched, and a file system makes `lost+found` for itself.
    private static func mayHoldLedgers(_ directory: String) -> Bool {
        let name = directory.parts(atLast: "/").map { String($0.behind) } ?? directory
        return name != "lost+found" && !name.hasPrefix(".")
    }

    /// Returns the directory itself if it is a ledger, otherwise the ledgers below it.
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
        if findsPrepared, try LedgerDirectory.has(.preparation(isProven: true), directory) {
            prepared.append(directory)
            return []
        }
        let found = try search(directory, option: option, levels: Self.levelsLimit)
        prepared += found.prepared
        // Only directories that can't be listed were found. The code that opens them as ledgers
        // reports why.
        let closedLedgers = found.closed.filter(Self.mayHoldLedgers)
        if found.ledgers.isEmpty, !closedLedgers.isEmpty { return closedLedgers }
        guard !found.ledgers.isEmpty || !found.prepared.isEmpty || mayBeEmpty else {
            throw refusal(
                option,
                "\(directory) is neither a ledger nor a directory of ledgers"
                    + (found.others.contains(where: Self.mayHoldLedgers)
                        ? " (searched \(Self.levelsLimit) levels of directories below it): "
                            + "name a directory nearer to the ledgers"
                        : ": name a directory of ledgers"))
        }
        closed += found.closed
        leftOut += found.others
        return found.ledgers
    }

    /// Directories found below a directory.
    private struct Found {
        var ledgers: [String] = []
        /// Directories of runs that ended before their campaign began.
        var prepared: [String] = []
        /// Directories that can't be listed.
        var closed: [String] = []
        /// Directories without a ledger at any of the levels that were searched. If such a
        /// directory contains others, only the outer one is named.
        var others: [String] = []
    }

    /// Returns the directories up to `levels` levels below a directory. Ledgers, the remains of an
    /// interrupted merge or repair, and hidden directories (such as snapshots) are not searched.
    private mutating func search(
        _ directory: String, option: String?, levels: Int
    ) throws(BroadsideError) -> Found {
        assert(levels > 0, "a search ends at its lowest level")
        searchedCount += 1
        guard searchedCount <= Self.directoriesLimit else {
            throw refusal(
                option,
                "\(directory): there are more than \(grouped(Self.directoriesLimit)) directories to "
                    + "search for ledgers: name directories nearer to the ledgers")
        }
        guard let names = SystemCall.names(inDirectory: directory) else {
            throw unusable(option, directory, errno: errno)
        }
        let folder =
            directory == "." ? "" : directory.hasSuffix("/") ? directory : directory + "/"
        var found = Found()
        for name in names.sorted() where try isDirectoryPath(folder + name) {
            let path = folder + name
            if try LedgerDirectory.isBegunLedger(path) {
                found.ledgers.append(path)
            } else if Self.isClosed(path) {
                found.closed.append(path)
            } else if levels > 1, !name.hasPrefix("."), try LedgerDirectory.has(.foreign, path) {
                let below = try search(path, option: option, levels: levels - 1)
                found.ledgers += below.ledgers
                found.prepared += below.prepared
                found.closed += below.closed
                let isNamed =
                    below.ledgers.isEmpty && below.prepared.isEmpty && below.closed.isEmpty
                found.others += isNamed ? [path] : below.others
            } else if findsPrepared, try LedgerDirectory.has(.preparation(isProven: true), path) {
                found.prepared.append(path)
            } else {
                found.others.append(path)
            }
        }
        return found
    }

    /// One-line note about directories without a ledger; nil if there are none.
    public var note: String? { line("skipped (no ledger)", leftOut) }

    /// One-line note about directories without a ledger, for a run that searches the same directories
    /// each night; nil if there are none. Hidden directories are not named.
    ///
    /// - Parameter own: The run's own ledger, which may not have begun; nil if there is none. The
    ///   directories that contain it are not named.
    func note(outside own: String?) -> String? {
        let own = own.map { normalizedPath($0) } ?? ""
        let others = leftOut.filter { directory in
            let directory = normalizedPath(directory)
            return Self.mayHoldLedgers(directory) && own != directory
                && !own.starts(withBytes: directory + "/")
        }
        return line("skipped (no ledger)", others)
    }

    /// One-line note about directories that this user can't read; nil if there are none.
    public var closedNote: String? {
        line("skipped (\(describe(errno: EACCES)); only its owner can read a ledger there)", closed)
    }

    /// Prints the notes as warnings to standard error.
    ///
    /// - Parameter option: The option with the directories, without dashes.
    public func warn(option: String) {
        for note in [note, closedNote] {
            if let note { standardErrorLine("broadside: warning: --\(option): \(note)") }
        }
    }

    private func line(_ what: String, _ directories: [String]) -> String? {
        guard !directories.isEmpty else { return nil }
        let rest = directories.count - Self.namedLimit
        return "\(what): " + directories.prefix(Self.namedLimit).joined(separator: ", ")
            + (rest > 0 ? " and \(rest) more" : "")
    }

    /// Checks that an output replaces no file of a ledger and no list.
    public func checkOutput(_ path: String?) throws(BroadsideError) {
        guard let path else { return }
        try OutputRule(inputs: [], ledgers: paths).check(option: "output", path: path)
    }
}

extension LedgerDirectory {
    /// Whether a directory has a ledger whose campaign was started.
    ///
    /// - Throws: Exit code 5 if a disk fails, because a result of false would cause the ledger to
    ///   be skipped.
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

    /// Whether a directory has certain contents; false if that can't be read.
    ///
    /// - Throws: Exit code 5 if a disk fails.
    fileprivate static func has(
        _ content: Content, _ path: String
    ) throws(BroadsideError) -> Bool {
        do throws(BroadsideError) {
            return try unlocked(path).content() == content
        } catch {
            guard error.exitCode != ExitCode.disk else { throw error }
            return false
        }
    }
}
