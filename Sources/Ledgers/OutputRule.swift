internal import BroadsideLedgerFormat
public import BroadsideSupport
internal import Glibc

/// Rule for the destinations of all outputs of all commands.
///
/// An output must not replace a symbolic link, a file that the command reads, a file of a ledger, a
/// claim on a ledger, or the notes about nights. It does not matter which path leads to the file. The rule is checked before anything is
/// sent.
public struct OutputRule {
    /// An input of a command.
    public struct Input {
        /// Name of the option that gives the input, without dashes.
        let option: String
        let path: String
        /// Whether the input is a directory whose payload files are all read. If so, an output in
        /// this directory must not have the name of a payload file, because the next run would read
        /// the output as a payload.
        let holdsPayloads: Bool

        /// Creates an input: a file, or a directory whose files are read.
        public init(option: String, path: String, holdsPayloads: Bool = false) {
            self.option = option
            self.path = path
            self.holdsPayloads = holdsPayloads
        }
    }

    private let inputs: [Input]
    private let ledgers: [String]

    /// Suffixes of payloads, credentials and configurations. If an option names a directory, the
    /// command reads the files in it that have such a suffix.
    private static let readSuffixes = [".json", ".pem", ".key", ".p8", ".p12", ".pfx"]

    /// - Parameters:
    ///   - inputs: Files and directories that the command reads.
    ///   - ledgers: Directories of ledgers that the command reads or writes.
    public init(inputs: [Input], ledgers: [String]) {
        self.inputs = inputs
        self.ledgers = ledgers
    }

    /// Checks an output.
    ///
    /// - Throws: Exit code 2 if it violates the rule.
    public func check(option: String, path: String) throws(BroadsideError) {
        guard path != "-" else { return }
        try Self.checkDestination(option: option, path: path)
        let target = Target(path)
        for input in inputs { try check(option, target, input) }
        for ledger in ledgers { try check(option, target, ledger: ledger) }
    }

    /// Whether a path leads to a ledger's directory, whole or damaged.
    ///
    /// - Throws: Exit code 5 if a disk fails.
    package static func isLedger(_ path: String) throws(BroadsideError) -> Bool {
        try LedgerDirectory.isLedger(path)
    }

    /// Checks the part of the rule that needs no other option: the output is not a symbolic link,
    /// not in a ledger's directory, not a claim, and not the notes about nights.
    ///
    /// A link to a device or a pipe (`/dev/stdout`, a shell's `>(...)`) is allowed, because nothing
    /// can be lost there.
    package static func checkDestination(option: String, path: String) throws(BroadsideError) {
        guard path != "-", !leadsToDevice(path) else { return }
        if let information = SystemCall.linkStatus(path), information.st_mode & S_IFMT == S_IFLNK {
            throw .usage(
                option, "\(path) is a symbolic link, which would be replaced: name the file itself"
            )
        }
        let directory = parent(of: path)
        if try LedgerDirectory.isLedger(directory) {
            throw .usage(
                option,
                "\(path) is in the ledger \(directory), whose files are never "
                    + "overwritten: choose another place")
        }
        guard !ClaimFolder.isClaimName(path.parts(atLast: "/")?.behind ?? path[...]) else {
            throw .usage(
                option, "\(path) has the name of a claim on a ledger: choose another name")
        }
        guard !isNightNotes(path) else {
            throw .usage(
                option,
                "\(path) is the file that records which nights were started: choose another")
        }
    }

    /// Beginning of the file in which `night` notes which nights have begun. The number of the
    /// file's format follows.
    package static let nightNotesMark = "broadside nights "

    /// Whether a file has notes about nights, under any name. If they were overwritten, a night
    /// could be sent twice.
    private static func isNightNotes(_ path: String) -> Bool {
        let mark = Array(nightNotesMark.utf8)
        let file = SystemCall.open(path, O_RDONLY | O_NONBLOCK | O_NOFOLLOW | O_CLOEXEC)
        guard file >= 0 else { return false }
        defer { close(file) }
        var bytes = [UInt8](repeating: 0, count: mark.count)
        return SystemCall.read(file, &bytes) == mark.count && bytes == mark
    }

    private static func leadsToDevice(_ path: String) -> Bool {
        guard let information = SystemCall.status(path) else { return false }
        return ![S_IFREG, S_IFDIR].contains(information.st_mode & S_IFMT)
    }

    private func check(
        _ option: String, _ target: Target, _ input: Input
    ) throws(BroadsideError) {
        if try isDirectoryPath(input.path) {
            let folder = absolutePath(input.path)
            let isNewPayload =
                input.holdsPayloads && target.folder == folder && target.path.hasSuffix(".json")
            let isRead = try Self.names(in: input.path).contains { name in
                Self.readSuffixes.contains(where: name.hasSuffix)
                    && target.isSame(as: "\(input.path)/\(name)")
            }
            guard isNewPayload || isRead else { return }
            throw .usage(
                option,
                "\(target.path) is a file that --\(input.option) reads, and it "
                    + "would be overwritten: choose another")
        }
        guard target.isSame(as: input.path) else { return }
        throw .usage(
            option,
            "\(target.path) is the file that --\(input.option) reads, and it "
                + "would be overwritten: choose another")
    }

    private func check(
        _ option: String, _ target: Target, ledger: String
    ) throws(BroadsideError) {
        if target.isSame(as: ledger) || target.location == Target(ledger).location {
            throw .usage(
                option, "\(target.path) is the ledger's directory: choose another place")
        }
        guard try isDirectoryPath(ledger) else { return }
        let directory = LedgerDirectory.unlocked(ledger)
        let manifest = try? directory.readManifest()
        for folder in [ledger] + (manifest?.shards ?? []).map({ "\(ledger)/\($0)" }) {
            for name in try Self.names(in: folder) where target.isSame(as: "\(folder)/\(name)") {
                throw .usage(option, "\(target.path) is a file of the ledger: choose another")
            }
            let list = try? LedgerDirectory.unlocked(folder).readManifest().listPath
            guard let list, target.isSame(as: list) else { continue }
            throw .usage(
                option,
                "\(target.path) is the campaign's token list, and it would be "
                    + "overwritten: choose another")
        }
    }

    private static func names(in directory: String) throws(BroadsideError) -> [String] {
        do throws(BroadsideError) {
            return try LedgerDirectory.unlocked(directory).names()
        } catch {
            guard error.exitCode != ExitCode.disk else { throw error }
            return []
        }
    }

    /// Returns the folder of a path.
    static func parent(of path: String) -> String {
        guard let (folder, _) = path.parts(atLast: "/") else { return "." }
        return folder.isEmpty ? "/" : String(folder)
    }

    /// An output, with values that identify its file.
    private struct Target {
        let path: String
        /// Absolute path, without links, of the folder that contains or will contain the file.
        let folder: String
        /// Absolute path of the file, even if it does not exist.
        let location: String
        private let identity: FileIdentity?

        init(_ path: String) {
            self.path = path
            identity = FileIdentity(path: path)
            folder = absolutePath(OutputRule.parent(of: path))
            location = OutputRule.location(of: path)
        }

        /// Whether another path leads to the same file or directory. False for devices and pipes,
        /// which may be written and read any number of times.
        func isSame(as other: String) -> Bool {
            guard let identity, let other = FileIdentity(path: other) else { return false }
            return identity == other && (identity.isRegular || identity.isDirectory)
        }
    }

    /// Returns the absolute path of a file. The file need not exist.
    private static func location(of path: String) -> String {
        var path = path[...]
        while path.count > 1, path.hasSuffix("/") { path = path.dropLast() }
        let name = path.parts(atLast: "/")?.behind ?? path
        return "\(absolutePath(parent(of: String(path))))/\(name)"
    }

    /// Whether two outputs are the same file, or will be once they are written.
    public static func areSame(_ first: String, _ second: String) -> Bool {
        Target(first).isSame(as: second)
            || FileIdentity(path: first) == nil && location(of: first) == location(of: second)
    }
}

/// Checks that an output can be written. Without this check, writing would fail only after the run.
///
/// - Parameter isDryRun: Whether to check only the folder's permissions, and to write nothing.
package func checkWritable(
    _ path: String, option: String, isDryRun: Bool = false
) throws(BroadsideError) {
    try OutputRule.checkDestination(option: option, path: path)
    switch SystemCall.status(path).map({ $0.st_mode & S_IFMT }) {
    case S_IFREG, nil: break
    case S_IFDIR: throw .usage(option, "\(path) is a directory: name a file in it")
    case S_IFSOCK: throw .usage(option, "\(path) is a socket: name a file")
    default: return
    }
    guard !isDryRun else { return try checkFolder(of: path, option: option) }
    let probe = temporaryName(of: path)
    let descriptor = SystemCall.open(
        probe, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0o644)
    guard descriptor >= 0 else {
        throw .file(option: option, path, errno: errno, "name a place to write to")
    }
    close(descriptor)
    SystemCall.unlink(probe)
}
