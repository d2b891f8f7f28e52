internal import Glibc
import Support

/// A folder with claims in it: files beside ledgers, each of which says that an attempt at a campaign
/// began. Made with O_EXCL, so that of two copies of a ledger one has it, on NFS as well.
final class ClaimFolder {
    /// No claim has more bytes: a nonce, and the ledger's path.
    private static let claimLimit = 1 << 14

    let descriptor: Int32
    let path: String
    /// What all claims of the campaign begin with.
    let prefix: String

    /// - Parameters:
    ///   - descriptor: The open folder, which is closed with this value.
    ///   - campaign: 16 hexadecimal digits, and the part if there are several.
    init(_ descriptor: Int32, path: String, campaign: String) {
        self.descriptor = descriptor
        self.path = path
        prefix = ".broadside-\(campaign)."
    }

    deinit { close(descriptor) }

    func name(_ number: UInt32) -> String { "\(prefix)\(number)" }

    /// The numbers of all claims that are here.
    func numbers() -> [UInt32] {
        // Through the descriptor: the path may lead elsewhere by now.
        let names = SystemCall.names(inDirectory: "/proc/self/fd/\(descriptor)") ?? []
        return names.compactMap { name in
            guard name.hasPrefix(prefix) else { return nil }
            let digits = name.dropFirst(prefix.count)
            guard let number = UInt32(digits), "\(number)" == digits else { return nil }
            return number
        }
    }

    /// What a claim says; nil where it can't be read.
    func read(_ number: UInt32) -> (nonce: String, ledger: String)? {
        let file = SystemCall.open(
            name(number), in: descriptor, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC)
        guard file >= 0 else { return nil }
        defer { close(file) }
        var bytes = [UInt8](repeating: 0, count: Self.claimLimit)
        let count = SystemCall.read(file, &bytes)
        guard count > 0 else { return nil }
        let text = String(decoding: bytes.prefix(count), as: UTF8.self)
        let words = text.dropLast().split(separator: " ", maxSplits: 1)
        return words.count == 2 ? (String(words[0]), String(words[1])) : nil
    }

    /// Makes a claim.
    ///
    /// - Returns: 0, or the number of the error: EEXIST where another copy has it.
    func make(_ number: UInt32, nonce: String, ledger: String) -> Int32 {
        let file = SystemCall.open(
            name(number), in: descriptor, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC,
            0o600)
        guard file >= 0 else { return errno }
        defer { close(file) }
        let bytes = Array("\(nonce) \(ledger)\n".utf8)
        guard SystemCall.write(file, bytes.rawSpan) == bytes.count, fsync(file) == 0 else {
            let code = errno
            SystemCall.unlink(name(number), in: descriptor)
            return code == 0 ? ENOSPC : code
        }
        fsync(descriptor)
        return 0
    }

    /// Takes claims away that a newer one stands for.
    func remove(below number: UInt32) {
        for older in numbers() where older < number {
            SystemCall.unlink(name(older), in: descriptor)
        }
    }
}
