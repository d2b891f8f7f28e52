internal import BroadsideLedgerFormat
import BroadsideSupport
internal import Glibc

/// Folder with claims. A claim is a file beside a ledger. It shows that an attempt at a campaign
/// has started. It is created with O_EXCL, so that only one of two copies of a ledger can create
/// it, even on NFS.
final class ClaimFolder {
    /// Content of a claim.
    enum Content: Equatable {
        /// The claim's text, and the position up to which each segment of the attempt was durable.
        case claim(nonce: String, ledger: String, [DurablePosition])
        /// The attempt that made the claim ended before it wrote the text; it sent nothing.
        case unfinished
        /// The name belongs to a file that is not a claim.
        case foreign
        /// The text is damaged, so it does not show whose claim this is. The positions are those that
        /// survive.
        case damaged([DurablePosition])
        /// The claim can't be read; the value is the errno.
        case unreadable(Int32)
    }

    let descriptor: Int32
    let path: String
    /// Common prefix of the names of all claims on the ledger.
    let prefix: String
    /// Common prefix of the names of all claims on parts of the campaign.
    private let partsPrefix: String
    /// Part of the campaign; nil for a campaign of one list.
    private let part: CampaignPart?

    /// - Parameters:
    ///   - descriptor: Descriptor of the open folder; closed when this object is destroyed.
    ///   - path: The folder's path.
    ///   - manifest: Manifest of the ledger.
    init(_ descriptor: Int32, path: String, manifest: Manifest) {
        assert(descriptor >= 0 && path.hasPrefix("/"), "claims are in an open folder")
        self.descriptor = descriptor
        self.path = path
        part = manifest.identity.part
        partsPrefix = ".broadside-\(manifest.campaign)-"
        prefix = Self.prefix(of: manifest)
    }

    /// Returns the common prefix of the names of all claims on a ledger.
    static func prefix(of manifest: Manifest) -> String {
        let suffix = manifest.identity.part.map { "-\($0.index)-\($0.count)" } ?? ""
        return ".broadside-\(manifest.campaign)\(suffix)."
    }

    /// Returns whether a file's name is that of a claim on any ledger.
    static func isClaimName(_ name: Substring) -> Bool {
        guard name.hasPrefix(".broadside-"),
            let (start, digits) = String(name.dropFirst(".broadside-".count)).parts(atLast: "."),
            number(digits).map({ $0 > 0 }) ?? false
        else { return false }
        let words = start.split(separator: "-", omittingEmptySubsequences: false)
        let isPart = words.count == 3 && CampaignPart("\(words[1])/\(words[2])") != nil
        return words[0].utf8.count == 16 && words[0].allSatisfy(\.isHexDigit)
            && (words.count == 1 || isPart)
    }

    /// Returns whether two values describe the same folder. Their paths may differ.
    func isSame(as other: ClaimFolder) -> Bool {
        guard let own = SystemCall.status(of: descriptor),
            let others = SystemCall.status(of: other.descriptor)
        else { return false }
        return (own.st_dev, own.st_ino) == (others.st_dev, others.st_ino)
    }

    deinit { close(descriptor) }

    /// Returns the name of a claim.
    func name(_ number: UInt32) -> String { "\(prefix)\(number)" }

    /// Returns the path of a claim.
    func claimPath(_ number: UInt32) -> String { path(of: name(number)) }

    private func path(of name: String) -> String { (path == "/" ? "" : path) + "/" + name }

    /// Returns the numbers of all claims on the ledger in this folder.
    func numbers() throws(BroadsideError) -> [UInt32] {
        try names().compactMap { name in
            name.hasPrefix(prefix) ? Self.number(name.dropFirst(prefix.count)) : nil
        }
    }

    /// Returns the names of all files in this folder.
    private func names() throws(BroadsideError) -> [String] {
        // Uses the descriptor, because the path may have changed since.
        guard let names = SystemCall.names(inDirectory: "/proc/self/fd/\(descriptor)") else {
            throw BroadsideError(
                option: "ledger",
                "\(path): "
                    + FileFailure.message(errno: errno, "the folder of the ledger must be readable"),
                exitCode: 5)
        }
        return names
    }

    /// Parses a number; nil if `name` would write the number differently, as with `07` or `+7`.
    private static func number(_ digits: Substring) -> UInt32? {
        UInt32(digits).flatMap { "\($0)" == digits ? $0 : nil }
    }

    /// Refuses a part if a claim in this folder shows that the campaign was divided into another
    /// number of parts. The same row is in different parts of such divisions. So rows would be sent
    /// again, some with apns-ids that are in use.
    ///
    /// - Throws: Exit code 2.
    func refuseOtherDivision() throws(BroadsideError) {
        guard let part else { return }
        for name in try names().sorted() where name.hasPrefix(partsPrefix) {
            let numbers = name.dropFirst(partsPrefix.count).split(
                separator: ".", omittingEmptySubsequences: false)
            guard numbers.count == 2, Self.number(numbers[1]) != nil else { continue }
            let words = numbers[0].split(separator: "-", omittingEmptySubsequences: false)
            guard words.count == 2, let other = CampaignPart(words.joined(separator: "/")),
                other.count != part.count
            else { continue }
            throw .usage(
                "part",
                "\(part.text): the campaign of --campaign-id was begun in \(other.count) parts "
                    + "(\(path(of: name))), so \(part.count) parts would send rows again: write "
                    + "K/\(other.count). If no row of the campaign was sent, remove that file")
        }
    }

    /// Returns the number of the newest claim; 0 if there is none.
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
        let positions = DurablePosition.all(in: content)
        guard text.last == "\n" else {
            // No attempt records positions before it has written the text.
            return positions.isEmpty ? .unfinished : .damaged(positions)
        }
        let words = text.dropLast().split(separator: " ", maxSplits: 1)
        guard words.count == 2 else { return .foreign }
        return .claim(nonce: String(words[0]), ledger: String(words[1]), positions)
    }

    /// Creates a claim and makes it durable.
    ///
    /// - Returns: The claim's descriptor, or the negative errno: EEXIST if the claim exists.
    func make(_ number: UInt32, nonce: String, ledger: String) -> Int32 {
        assert(number > 0 && !nonce.isEmpty, "claims are counted from 1")
        let file = SystemCall.open(
            name(number), in: descriptor, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC,
            0o600)
        guard file >= 0 else { return -errno }
        // The claim is written in full here, so that positions can be recorded even if the disk is
        // full later.
        var bytes = [UInt8](repeating: 0, count: DurablePosition.claimByteCount)
        let text = Array("\(nonce) \(ledger)\n".utf8.prefix(DurablePosition.start))
        bytes.replaceSubrange(..<text.count, with: text)
        let failure = writeWhole(bytes.rawSpan, to: file)
        // The permissions must not depend on the umask, because a claim without permissions counts
        // as removed.
        fchmod(file, 0o600)
        guard failure == nil, fsync(file) == 0, syncNames(in: descriptor) else {
            let code = failure ?? errno
            close(file)
            SystemCall.unlink(name(number), in: descriptor)
            return -code
        }
        return file
    }

    /// Removes the claims that a newer claim replaces. A process that holds a removed claim notices
    /// the removal.
    ///
    /// NFS keeps a removed claim under another name while a process of the same machine has the
    /// claim open. So each claim loses its content and its permissions before it is removed. It
    /// stays empty until the process that holds it records a position.
    ///
    /// - Parameters:
    ///   - number: The newer claim.
    ///   - own: Claim in this folder that this process holds; nil if it holds none. No other
    ///     process uses this claim, so a power cut may restore the claim's name without harm.
    /// - Returns: 0 or the errno.
    func remove(below number: UInt32, own: UInt32?) throws(BroadsideError) -> Int32 {
        assert(number > 0, "claims are counted from 1")
        var concernsOthers = false
        for older in try numbers() where older < number {
            if older != own { concernsOthers = true }
            let file = SystemCall.open(
                name(older), in: descriptor,
                O_WRONLY | O_TRUNC | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC)
            guard file >= 0 || errno == ELOOP || isGone(older, errno) else { return errno }
            if file >= 0 {
                fchmod(file, 0)
                close(file)
            }
            guard SystemCall.unlink(name(older), in: descriptor) == 0 || errno == ENOENT else {
                return errno
            }
        }
        return !concernsOthers || syncNames(in: descriptor) ? 0 : errno
    }
}

extension ClaimFolder {
    /// Returns whether a claim that could not be opened was removed, or is being removed: it then
    /// has no permissions, and stays so if the attempt that removes it is killed. This function does
    /// not change `errno`.
    func isGone(_ number: UInt32, _ code: Int32) -> Bool {
        let before = errno
        defer { errno = before }
        if code == ENOENT { return true }
        guard code == EACCES else { return false }
        guard let status = SystemCall.linkStatus(name(number), in: descriptor) else {
            // Its name may be removed after the attempt to open it.
            return errno == ENOENT
        }
        return status.st_mode & 0o777 == 0
    }
}

/// A claim that this process made. If another process makes a newer claim, it removes this one.
package final class HeldClaim {
    /// Descriptor of the open claim. The claim's file loses its name when a newer attempt starts.
    package let descriptor: Int32
    let folder: ClaimFolder
    let number: UInt32

    /// - Parameters:
    ///   - descriptor: Descriptor of the open claim; closed when this object is destroyed.
    ///   - folder: The folder that contains it.
    ///   - number: Its number.
    init(_ descriptor: Int32, in folder: ClaimFolder, number: UInt32) {
        assert(descriptor >= 0 && number > 0, "a held claim is an open file")
        self.descriptor = descriptor
        self.folder = folder
        self.number = number
    }

    deinit { close(descriptor) }

    /// State of the claim during its run.
    enum Standing: Equatable {
        /// The claim's name still leads to the file that this process opened.
        case newest
        /// The claim was replaced by a newer attempt, or removed by hand.
        case replaced
        /// The check failed; the value is the errno.
        case unknown(Int32)
    }

    /// State of the claim. The claim is `newest` if its name still leads to the open file. The
    /// check opens the name, because NFS then asks the NFS server and does not use its local cache.
    var standing: Standing {
        let file = SystemCall.open(
            folder.name(number), in: folder.descriptor,
            O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC)
        guard file >= 0 else {
            let number = errno
            // A newer attempt removes all permissions from a claim before it removes the claim.
            let isClosed =
                number == EACCES && FileIdentity(descriptor: descriptor)?.permissions == 0
            // An error such as too many open files, or a failing disk, does not indicate another
            // attempt.
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
