internal import BroadsidePrimitives
import BroadsideSupport

/// File `epoch` in a ledger's directory: the ledger's own record of its attempts.
///
///     CONFIRMED CLAIMED NONCE[,NONCE-OF-CONFIRMED] PARENT
///     checksum 0123456789abcdef
///
/// The checksum is the `FNV1aHash` of the first line without its line feed. Earlier versions wrote
/// no checksum.
///
/// Each claim is recorded twice: before and after the claim is made. The ledger can then recognize
/// its own claim after a crash between these two steps.
struct AttemptRecord: Equatable {
    /// State of the file.
    enum State: Equatable {
        case intact(AttemptRecord)
        case missing, damaged

        /// The record; nil if it is missing or damaged.
        var record: AttemptRecord? {
            guard case .intact(let record) = self else { return nil }
            return record
        }
    }

    /// Newest attempt that is known to have a claim; 0 if there is none.
    var confirmed: UInt32
    /// Newest attempt for which a claim was intended.
    var claimed: UInt32
    /// Random value that distinguishes the claim `claimed` from the claim of another copy: 16
    /// hexadecimal digits.
    var nonce: String
    /// Nonce of the claim `confirmed`; nil if it is `nonce`, or unknown.
    var confirmedNonce: String?
    /// Folder of the confirmed claim.
    var parent: String

    /// Maximum number of attempts of a ledger.
    private static let numberMax: UInt32 = 1 << 31

    /// Bytes of the file.
    var encoded: [UInt8] {
        let nonces = nonce + (confirmedNonce.map { ",\($0)" } ?? "")
        let line = "\(confirmed) \(claimed) \(nonces) \(parent)"
        return Array("\(line)\n\(Self.checksumLine(of: line))\n".utf8)
    }

    /// Beginning of the second line.
    private static let checksumPrefix = "checksum "
    /// Length of the second line.
    private static let checksumByteCount = checksumPrefix.utf8.count + 16

    private static func checksumLine(of line: String) -> String {
        checksumPrefix + hexadecimal(FNV1aHash.hash(line.utf8))
    }

    /// Returns the first line of the file; nil if the checksum differs.
    private static func line(_ bytes: [UInt8]) -> String? {
        guard bytes.last == 0x0a, let text = String(validating: bytes.dropLast(), as: UTF8.self)
        else { return nil }
        let end = String(decoding: text.utf8.suffix(checksumByteCount), as: UTF8.self)
        let start = text.utf8.dropLast(checksumByteCount)
        guard start.last == 0x0a || end.hasPrefix(checksumPrefix) else { return text }
        let line = String(decoding: start.dropLast(), as: UTF8.self)
        return start.last == 0x0a && end == checksumLine(of: line) ? line : nil
    }

    init(
        confirmed: UInt32, claimed: UInt32, nonce: String, confirmedNonce: String? = nil,
        parent: String
    ) {
        assert(nonce.utf8.count == 16 && parent.hasPrefix("/"), "the record can be read back")
        assert(confirmedNonce == nil || confirmed < claimed, "each claim has one nonce")
        assert(confirmed <= claimed, "an attempt is claimed before it is confirmed")
        self.confirmed = confirmed
        self.claimed = claimed
        self.nonce = nonce
        self.confirmedNonce = confirmedNonce
        self.parent = parent
    }

    /// Returns the nonce of one of the ledger's claims; nil if it is unknown.
    func nonce(of number: UInt32) -> String? {
        number == claimed ? nonce : number == confirmed ? confirmedNonce : nil
    }

    /// Whether the claim with this number is known to come from a copy of the ledger.
    ///
    /// This ledger makes no claim with a number between the confirmed claim and the intended one.
    /// That is not certain if the record lacks the nonce of the confirmed claim, because an earlier
    /// version of Broadside wrote that record.
    func isForeign(_ number: UInt32) -> Bool {
        if number > claimed { return true }
        let isExact = confirmed == 0 || confirmed == claimed || confirmedNonce != nil
        return isExact && number > confirmed && number != claimed
    }

    /// Returns the record of an attempt that is about to be claimed.
    ///
    /// - Parameters:
    ///   - number: The attempt.
    ///   - newest: Newest claim, which is the ledger's own; 0 if there is none.
    func next(_ number: UInt32, nonce: String, after newest: UInt32) -> AttemptRecord {
        let confirmed = max(confirmed, newest)
        return AttemptRecord(
            confirmed: confirmed, claimed: number, nonce: nonce,
            confirmedNonce: self.nonce(of: confirmed), parent: parent)
    }

    /// Returns whether a text is a nonce.
    static func isNonce(_ text: some StringProtocol) -> Bool {
        text.utf8.count == 16 && text.allSatisfy(\.isHexDigit)
    }

    /// Parses the file; nil if it is invalid.
    init?(_ bytes: [UInt8]) {
        guard let text = Self.line(bytes) else { return nil }
        let words = text.split(separator: " ", maxSplits: 3, omittingEmptySubsequences: false)
        guard words.count == 4, let confirmed = UInt32(words[0]), let claimed = UInt32(words[1]),
            confirmed <= claimed, claimed <= Self.numberMax, words[3].hasPrefix("/")
        else { return nil }
        let nonces = words[2].split(separator: ",", omittingEmptySubsequences: false)
        guard nonces.allSatisfy(Self.isNonce),
            nonces.count == 1 || nonces.count == 2 && confirmed < claimed
        else { return nil }
        self.init(
            confirmed: confirmed, claimed: claimed, nonce: String(nonces[0]),
            confirmedNonce: nonces.count == 2 ? String(nonces[1]) : nil, parent: String(words[3]))
    }
}
