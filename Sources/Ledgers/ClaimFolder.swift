internal import BroadsideLedgerFormat
import BroadsideSupport
internal import Glibc

/// A folder with claims in it: files beside ledgers, each of which shows that an attempt at a campaign
/// began. They are made with O_EXCL, so that of two copies of a ledger only one makes it, on NFS as well.
final class ClaimFolder {
    /// The content of a claim.
    enum Content: Equatable {
        /// Behind its text, up to where the segments of its attempt are durable.
        case claim(nonce: String, ledger: String, [DurablePosition])
        /// The attempt that made it ended before it was written: it read and sent nothing.
        case unfinished
        /// Something else has its name.
        case foreign
        /// It can't be read; the number of the error.
        case unreadable(Int32)
    }

    let descriptor: Int32
    let path: String
    /// What the names of all claims on the ledger begin with.
    let prefix: String

    /// - Parameters:
    ///   - descriptor: The open folder, which is closed with this value.
    ///   - path: The folder's path.
    ///   - manifest: The ledger's.
    init(_ descriptor: Int32, path: String, manifest: Manifest) {
        assert(descriptor >= 0 && path.hasPrefix("/"), "claims are in an open folder")
        self.descriptor = descriptor
        self.path = path
        let part = manifest.identity.part.map { "-\($0.index)-\($0.count)" } ?? ""
        prefix = ".broadside-\(manifest.campaign)\(part)."
    }

    deinit { close(descriptor) }

    /// A claim's name.
    func name(_ number: UInt32) -> String { "\(prefix)\(number)" }

    /// A claim's path.
    func claimPath(_ number: UInt32) -> String {
        (path == "/" ? "" : path) + "/" + name(number)
    }

    /// The numbers of all claims on the ledger that are here.
    func numbers() throws(BroadsideError) -> [UInt32] {
        // Through the descriptor: the path may lead elsewhere by now.
        guard let names = SystemCall.names(inDirectory: "/proc/self/fd/\(descriptor)") else {
            throw BroadsideError(
                option: "ledger",
                "\(path): "
                    + FileFailure.message(errno: errno, "the folder of the ledger must be readable"),
                exitCode: 5)
        }
        return names.compactMap { name in
            guard name.hasPrefix(prefix) else { return nil }
            let digits = name.dropFirst(prefix.count)
            guard let number = UInt32(digits), "\(number)" == digits else { return nil }
            return number
        }
    }

    /// The newest claim; 0 if there is none.
    func newest() throws(BroadsideError) -> UInt32 { try numbers().max() ?? 0 }

    /// Reads a claim.
    func read(_ number: UInt32) -> Content {
        let file = SystemCall.open(
            name(number), in: descriptor, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC)
        guard file >= 0 else { return errno == ELOOP ? .foreign : .unreadable(errno) }
        defer { close(file) }
        var bytes = [UInt8](repeating: 0, count: DurablePosition.claimByteCount)
        let count = SystemCall.read(file, &bytes)
        guard count >= 0 else { return .unreadable(errno) }
        let content = bytes.prefix(count)
        let text = String(
            decoding: content.prefix(DurablePosition.start).prefix { $0 != 0 }, as: UTF8.self)
        guard text.last == "\n" else { return .unfinished }
        let words = text.dropLast().split(separator: " ", maxSplits: 1)
        guard words.count == 2 else { return .foreign }
        return .claim(
            nonce: String(words[0]), ledger: String(words[1]), DurablePosition.all(in: content))
    }

    /// Makes a claim, which is durable then.
    ///
    /// - Returns: Its descriptor; else the number of the error, negative: EEXIST if there is one.
    func make(_ number: UInt32, nonce: String, ledger: String) -> Int32 {
        assert(number > 0 && !nonce.isEmpty, "claims are counted from 1")
        let file = SystemCall.open(
            name(number), in: descriptor, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC,
            0o600)
        guard file >= 0 else { return -errno }
        // All of it now: a disk that is full later must not keep positions from being noted.
        var bytes = [UInt8](repeating: 0, count: DurablePosition.claimByteCount)
        let text = Array("\(nonce) \(ledger)\n".utf8.prefix(DurablePosition.start))
        bytes.replaceSubrange(..<text.count, with: text)
        let written = SystemCall.write(file, bytes.rawSpan)
        // Not what it is if it was removed, whatever the umask.
        fchmod(file, 0o600)
        guard written == bytes.count, fsync(file) == 0, syncNames(in: descriptor) else {
            let code = written >= 0 && written < bytes.count ? ENOSPC : errno
            close(file)
            SystemCall.unlink(name(number), in: descriptor)
            return -code
        }
        return file
    }

    /// Removes the claims that a newer one replaces, so that those who made them notice. NFS keeps a file
    /// that a process of the same machine holds open under another name: it is without any permission, and
    /// empty until that process notes a position.
    ///
    /// - Returns: 0, or the number of the error.
    func remove(below number: UInt32) throws(BroadsideError) -> Int32 {
        assert(number > 0, "claims are counted from 1")
        for older in try numbers() where older < number {
            let file = SystemCall.open(
                name(older), in: descriptor,
                O_WRONLY | O_TRUNC | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC)
            guard file >= 0 || errno == ENOENT || errno == ELOOP else { return errno }
            if file >= 0 {
                fchmod(file, 0)
                close(file)
            }
            guard SystemCall.unlink(name(older), in: descriptor) == 0 || errno == ENOENT else {
                return errno
            }
        }
        return syncNames(in: descriptor) ? 0 : errno
    }
}

/// The claim that this process made. Whoever claims a newer attempt removes it.
package final class HeldClaim {
    /// The claim, open: a file that has no name any more if a newer attempt began.
    package let descriptor: Int32
    let folder: ClaimFolder
    let number: UInt32

    /// - Parameters:
    ///   - descriptor: The open claim, which is closed with this value.
    ///   - folder: Where it is.
    ///   - number: Its number.
    init(_ descriptor: Int32, in folder: ClaimFolder, number: UInt32) {
        assert(descriptor >= 0 && number > 0, "a held claim is an open file")
        self.descriptor = descriptor
        self.folder = folder
        self.number = number
    }

    deinit { close(descriptor) }

    /// What is known of the claim while its run goes on.
    enum Standing: Equatable {
        /// It is still under its name.
        case newest
        /// It is not: a newer attempt began, or somebody removed it.
        case replaced
        /// It can't be looked at; the number of the error.
        case unknown(Int32)
    }

    /// Whether the claim is still under its name. The name is looked up and opened, which NFS asks its
    /// server about, not its cache.
    var standing: Standing {
        let file = SystemCall.open(
            folder.name(number), in: folder.descriptor,
            O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC)
        guard file >= 0 else {
            let number = errno
            // A newer attempt takes all permissions from a claim before it removes it.
            let isClosed =
                number == EACCES && FileIdentity(descriptor: descriptor)?.permissions == 0
            // A process with too many open files, or a disk that fails, says nothing of other attempts.
            return number == ENOENT || number == ELOOP || isClosed ? .replaced : .unknown(number)
        }
        defer { close(file) }
        guard let found = SystemCall.status(of: file) else { return .unknown(errno) }
        guard let own = SystemCall.status(of: descriptor) else {
            // ESTALE: removed on the NFS server, by another machine.
            return errno == ESTALE ? .replaced : .unknown(errno)
        }
        return (found.st_dev, found.st_ino) == (own.st_dev, own.st_ino) ? .newest : .replaced
    }
}
