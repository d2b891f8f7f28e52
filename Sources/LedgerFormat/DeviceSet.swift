internal import BroadsideAPNs
internal import BroadsidePrimitives
internal import BroadsideSupport

/// Devices to be erased from ledgers, by the fingerprints of their tokens. For each device, the set
/// records the latest ledger in which the device was found.
///
///     fingerprints   open addressing, at most half full; 0 is a free slot
///     ledgers        at the same index: number of the device's latest ledger; 0: none
///
/// Any two devices have the same fingerprint with a probability of 2^-64.
public struct DeviceSet: ~Copyable {
    /// Maximum number of devices. With this many, both tables together take 128 MiB.
    public static let countLimit = 1 << 22
    /// Minimum number of digits of a token that is searched for in texts. No device has a shorter
    /// token. Fewer digits could be part of an unrelated number.
    public static let textDigitCountMin = 32
    /// Minimum number of bytes of a text that contains such a token: its length in base64.
    static let textByteCountMin = base64Count(ofDigits: textDigitCountMin)
    /// Replacement of each digit of a token in a text.
    public static let mask = UInt8(ascii: "*")

    private var fingerprints = WordTable(count: 1 << 10)
    private var ledgers = WordTable(count: 1 << 10)
    /// The different lengths of the tokens, in digits, in rising order.
    private var digitCounts: [Int] = []
    /// Number of devices.
    public private(set) var count = 0
    /// Number of the ledger that is being processed, from 1.
    private var ledger: UInt64 = 0
    /// Number of devices found in the ledger that is being processed.
    public private(set) var foundCount = 0
    /// Number of devices found in any ledger.
    public private(set) var foundAnywhereCount = 0

    private var digits: [UInt8] = []
    /// Offsets of the digits in a text.
    private var offsets: [Int] = []

    /// Creates an empty set.
    public init() {}

    /// The different lengths of the tokens, in bytes.
    var byteCounts: [Int] { digitCounts.map { $0 / 2 } }

    /// Adds a device.
    ///
    /// - Parameter token: Lower-case digits of the device's token.
    /// - Returns: false if the set is full.
    public mutating func insert(_ token: RawSpan) -> Bool {
        assert(ledger == 0, "devices are added before any ledger is read")
        assert(token.byteCount % 2 == 0, "a token has whole bytes")
        let fingerprint = TokenText.fingerprint(token)
        let index = slot(of: fingerprint)
        if fingerprints[index] == fingerprint { return true }
        guard count < Self.countLimit else { return false }
        fingerprints[index] = fingerprint
        count += 1
        if !digitCounts.contains(token.byteCount) {
            digitCounts = (digitCounts + [token.byteCount]).sorted()
        }
        if count * 2 > fingerprints.count { grow() }
        return true
    }

    /// Starts to count the devices of the next ledger.
    public mutating func beginLedger() {
        ledger += 1
        foundCount = 0
    }

    /// Returns whether a device is in the set, and counts it for the ledger that is being
    /// processed.
    mutating func find(_ fingerprint: UInt64) -> Bool {
        // A ledger without tokens has 0 in place of fingerprints.
        guard fingerprint != 0 else { return false }
        let index = slot(of: fingerprint)
        guard fingerprints[index] == fingerprint else { return false }
        assert(ledger > 0, "a ledger is in work")
        if ledgers[index] == 0 { foundAnywhereCount += 1 }
        if ledgers[index] != ledger { foundCount += 1 }
        ledgers[index] = ledger
        assert(foundCount <= foundAnywhereCount && foundAnywhereCount <= count)
        return true
    }

    /// Returns whether a token is in the set, and counts it for the ledger that is being processed.
    ///
    /// - Parameter token: Lower-case digits.
    public mutating func find(token: RawSpan) -> Bool { find(TokenText.fingerprint(token)) }

    /// Like `find`, for callers that have only the fingerprint of a token in a list.
    package mutating func find(fingerprint: UInt64) -> Bool { find(fingerprint) }

    /// Whether a device is in the set. Does not count it.
    package func contains(fingerprint: UInt64) -> Bool {
        fingerprint != 0 && fingerprints[slot(of: fingerprint)] == fingerprint
    }

    /// Whether a token, given as bytes, is in the set.
    mutating func find(bytes: ArraySlice<UInt8>) -> Bool {
        guard digitCounts.contains(bytes.count * 2) else { return false }
        digits.removeAll(keepingCapacity: true)
        HexDigits.append(bytes, to: &digits)
        return find(TokenText.fingerprint(digits.rawSpan))
    }

    private func slot(of fingerprint: UInt64) -> Int {
        var index = Int(truncatingIfNeeded: fingerprint) & (fingerprints.count - 1)
        while fingerprints[index] != 0, fingerprints[index] != fingerprint {
            index = (index + 1) & (fingerprints.count - 1)
        }
        return index
    }

    private mutating func grow() {
        let old = exchange(&fingerprints, with: WordTable(count: fingerprints.count * 2))
        ledgers = WordTable(count: fingerprints.count)
        for index in 0..<old.count where old[index] != 0 {
            fingerprints[slot(of: old[index])] = old[index]
        }
        assert(count * 2 <= fingerprints.count, "half of the slots stay free")
    }

    // MARK: Texts

    /// Replaces the letters and digits of tokens in a text with `mask`. Finds hexadecimal tokens in
    /// upper and lower case, inside longer words, and with separators between their digits. Finds
    /// tokens in base64 as words of their own.
    ///
    /// - Returns: Whether the text contained a token.
    public mutating func maskTokens(in text: inout [UInt8]) -> Bool {
        let hasHexadecimal = maskHexadecimal(in: &text)
        return maskBase64(in: &text) || hasHexadecimal
    }

    private mutating func maskHexadecimal(in text: inout [UInt8]) -> Bool {
        let least = max(Self.textDigitCountMin, digitCounts.first ?? 0)
        var isChanged = false
        var start = 0
        while start < text.count {
            guard Self.isDigit(text[start]) else {
                start += 1
                continue
            }
            var end = start
            var digitCount = 0
            while end < text.count {
                if Self.isDigit(text[end]) {
                    digitCount += 1
                } else if !Self.isSeparator(text[end]) {
                    break
                }
                end += 1
            }
            if digitCount >= least, maskTokens(in: &text, start..<end) { isChanged = true }
            start = end
        }
        return isChanged
    }

    private static func isDigit(_ byte: UInt8) -> Bool { HexDigits.value(byte) != HexDigits.none }

    /// Whether a byte may be between the digits of a token: a blank, an angle bracket, a hyphen or a
    /// colon.
    private static func isSeparator(_ byte: UInt8) -> Bool {
        switch byte {
        case UInt8(ascii: " "), UInt8(ascii: "\t"), UInt8(ascii: "\r"), UInt8(ascii: "<"),
            UInt8(ascii: ">"), UInt8(ascii: "-"), UInt8(ascii: ":"):
            true
        default: false
        }
    }

    /// Replaces tokens within one sequence of hexadecimal digits and separators.
    private mutating func maskTokens(in text: inout [UInt8], _ run: Range<Int>) -> Bool {
        digits.removeAll(keepingCapacity: true)
        offsets.removeAll(keepingCapacity: true)
        for offset in run where Self.isDigit(text[offset]) {
            digits.append(text[offset] | 0x20)
            offsets.append(offset)
        }
        // These are copies, because `find` changes the set.
        let (lowered, offsets) = (digits, offsets)
        var isChanged = false
        for digitCount in digitCounts
        where digitCount >= Self.textDigitCountMin && digitCount <= lowered.count {
            for first in 0...(lowered.count - digitCount) {
                let token = lowered.rawSpan.extracting(first..<(first + digitCount))
                guard find(token: token) else { continue }
                isChanged = true
                for offset in offsets[first..<(first + digitCount)] { text[offset] = Self.mask }
            }
        }
        return isChanged
    }

    // MARK: Base64

    /// Number of characters of a token in base64 without padding, which holds six bits in each.
    private static func base64Count(ofDigits count: Int) -> Int { (2 * count + 2) / 3 }

    /// Replaces the letters and digits of tokens in base64, of either alphabet (RFC 4648). A letter
    /// or digit directly before or after a token would be a part of another text in base64.
    private mutating func maskBase64(in text: inout [UInt8]) -> Bool {
        let counts = digitCounts.filter { $0 >= Self.textDigitCountMin }
            .map(Self.base64Count(ofDigits:))
        guard !counts.isEmpty else { return false }
        var isChanged = false
        var start = 0
        while start < text.count {
            var end = start
            while end < text.count, Self.isLetterOrDigit(text[end]) { end += 1 }
            // Most words have another length, and no other character of base64 follows them.
            let mayContinue =
                end < text.count
                && (text[end] == UInt8(ascii: "\\") || Self.base64URL(text[end]) != nil)
            if mayContinue || counts.contains(end - start),
                maskBase64(in: &text, from: start, counts)
            {
                isChanged = true
            }
            start = end + 1
        }
        return isChanged
    }

    /// Replaces a token in base64 that begins at an offset. It has one of the numbers of characters.
    private mutating func maskBase64(
        in text: inout [UInt8], from start: Int, _ counts: [Int]
    ) -> Bool {
        let countMax = counts.last ?? 0
        var word: [UInt8] = []
        var end = start
        while word.count < countMax, end < text.count {
            // JSON may have a backslash before a slash.
            if text[end] == UInt8(ascii: "\\"), text[(end + 1)...].first == UInt8(ascii: "/") {
                end += 1
            }
            guard let character = Self.base64URL(text[end]) else { return false }
            word.append(character)
            end += 1
            guard counts.contains(word.count),
                end == text.count || !Self.isLetterOrDigit(text[end]),
                let bytes = Base64URL.decode(word), find(bytes: bytes[...])
            else { continue }
            for offset in start..<end where Self.isLetterOrDigit(text[offset]) {
                text[offset] = Self.mask
            }
            return true
        }
        return false
    }

    /// Returns the character of the URL-safe alphabet that has the value of a character of either
    /// alphabet; nil if the byte belongs to neither.
    private static func base64URL(_ byte: UInt8) -> UInt8? {
        switch byte {
        case UInt8(ascii: "+"), UInt8(ascii: "-"): UInt8(ascii: "-")
        case UInt8(ascii: "/"), UInt8(ascii: "_"): UInt8(ascii: "_")
        default: isLetterOrDigit(byte) ? byte : nil
        }
    }

    // MARK: Rows

    /// Replaces all letters, digits and non-ASCII bytes in a row of a list. Its quotes, separators
    /// and line ends remain.
    public static func maskRow(_ text: inout [UInt8], _ range: Range<Int>) {
        for index in range where isText(text[index]) { text[index] = mask }
    }

    /// Whether a byte is a letter, a digit or not ASCII.
    private static func isText(_ byte: UInt8) -> Bool { byte >= 0x80 || isLetterOrDigit(byte) }

    private static func isLetterOrDigit(_ byte: UInt8) -> Bool {
        byte >= 0x30 && byte <= 0x39 || byte | 0x20 >= 0x61 && byte | 0x20 <= 0x7A
    }

    /// Whether a text is like a row after `maskRow`: it contains a mask, but no letters, digits or
    /// non-ASCII bytes.
    public static func isMasked(_ text: RawSpan) -> Bool {
        var hasMask = false
        for index in 0..<text.byteCount {
            let byte = text.byte(at: index)
            if isText(byte) { return false }
            if byte == mask { hasMask = true }
        }
        return hasMask
    }
}
