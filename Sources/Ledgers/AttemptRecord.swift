/// File `epoch` in a ledger's directory: the ledger's own record of its attempts.
///
///     CONFIRMED CLAIMED NONCE[,NONCE-OF-CONFIRMED] PARENT
///
/// Each claim is recorded twice: before and after the claim is made. The ledger can then recognize
/// its own claim after a crash between these two steps.
struct AttemptRecord: Equatable {
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
        return Array("\(confirmed) \(claimed) \(nonces) \(parent)\n".utf8)
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

    /// Parses the file; nil if it is invalid.
    init?(_ bytes: [UInt8]) {
        guard bytes.last == 0x0a else { return nil }
        let text = String(decoding: bytes.dropLast(), as: UTF8.self)
        let words = text.split(separator: " ", maxSplits: 3, omittingEmptySubsequences: false)
        guard words.count == 4, let confirmed = UInt32(words[0]), let claimed = UInt32(words[1]),
            confirmed <= claimed, claimed <= Self.numberMax, words[3].hasPrefix("/")
        else { return nil }
        let nonces = words[2].split(separator: ",", omittingEmptySubsequences: false)
        guard nonces.allSatisfy({ $0.utf8.count == 16 }),
            nonces.count == 1 || nonces.count == 2 && confirmed < claimed
        else { return nil }
        self.init(
            confirmed: confirmed, claimed: claimed, nonce: String(nonces[0]),
            confirmedNonce: nonces.count == 2 ? String(nonces[1]) : nil, parent: String(words[3]))
    }
}
