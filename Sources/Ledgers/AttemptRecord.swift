/// File `epoch` in a ledger's directory: the ledger's own record of its attempts.
///
///     CONFIRMED CLAIMED NONCE PARENT
///
/// Each claim is recorded twice: before and after the claim is made. The ledger can then recognize
/// its own claim after a crash between these two steps.
struct AttemptRecord: Equatable {
    /// Newest attempt that is known to have a claim; 0 if there is none.
    var confirmed: UInt32
    /// Newest attempt for which a claim was intended.
    var claimed: UInt32
    /// Random value that distinguishes this claim from the claim of another copy: 16 hexadecimal
    /// digits.
    var nonce: String
    /// Folder of the confirmed claim.
    var parent: String

    /// Limit on the attempts of a ledger.
    private static let numberMax: UInt32 = 1 << 31

    /// Bytes of the file.
    var encoded: [UInt8] { Array("\(confirmed) \(claimed) \(nonce) \(parent)\n".utf8) }

    init(confirmed: UInt32, claimed: UInt32, nonce: String, parent: String) {
        assert(nonce.utf8.count == 16 && parent.hasPrefix("/"), "the record can be read back")
        assert(confirmed <= claimed, "an attempt is claimed before it is confirmed")
        self.confirmed = confirmed
        self.claimed = claimed
        self.nonce = nonce
        self.parent = parent
    }

    /// Parses the file; nil if it is invalid.
    init?(_ bytes: [UInt8]) {
        guard bytes.last == 0x0a else { return nil }
        let text = String(decoding: bytes.dropLast(), as: UTF8.self)
        let words = text.split(separator: " ", maxSplits: 3, omittingEmptySubsequences: false)
        guard words.count == 4, let confirmed = UInt32(words[0]), let claimed = UInt32(words[1]),
            confirmed <= claimed, claimed <= Self.numberMax, words[2].utf8.count == 16,
            words[3].hasPrefix("/")
        else { return nil }
        self.init(
            confirmed: confirmed, claimed: claimed, nonce: String(words[2]),
            parent: String(words[3]))
    }
}
