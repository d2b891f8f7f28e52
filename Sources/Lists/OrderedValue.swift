internal import BroadsideHygiene
internal import BroadsideSupport

/// A value that the operators `<`, `<=`, `>` and `>=` of a filter can compare. Its text determines
/// its kind:
///
/// - a number, such as `18`, `-0.5` or `1e6`. It is compared digit by digit, with any number of
///   digits.
/// - a version, such as `5.2.0` or `10.4.1.2`: numbers with at least two dots. If another text has
///   fewer parts, the missing ones are 0: `6` is `6.0.0`.
/// - a date of ISO 8601, with or without a time, such as `2024-02-29` or
///   `2024-02-29T18:30:00+02:00`. It covers the whole day, minute, second or millisecond that it
///   names.
struct OrderedValue: Sendable, Equatable {
    /// Kind of a value.
    enum Kind: Sendable, Equatable {
        case number(DecimalNumber)
        case version
        case date(WrittenTime)
    }

    /// Text of the value, without surrounding blanks.
    let bytes: [UInt8]
    let kind: Kind

    /// - Returns: nil if the text is neither a number, a version nor a date.
    init?(_ bytes: [UInt8]) {
        self.bytes = bytes
        let text = bytes.rawSpan
        if let number = DecimalNumber(text) {
            kind = .number(number)
        } else if let dots = VersionText.dotCount(text), dots >= 2 {
            kind = .version
        } else if let time = Self.date(text) {
            kind = .date(time)
        } else {
            return nil
        }
    }

    var text: [UInt8] { bytes }

    /// Name of the kind, for a message about texts that are not of this kind.
    var kindName: String {
        switch kind {
        case .number: "a number"
        case .version: "a version"
        case .date: "a date"
        }
    }

    /// Whether the value is a number with one dot, such as 5.9, which may be meant as a version.
    var mayBeVersion: Bool {
        guard case .number = kind else { return false }
        return VersionText.dotCount(bytes.rawSpan) == 1
    }

    /// End of a message: advice on comparing with versions.
    var versionAdvice: String {
        let text = String(decoding: bytes, as: UTF8.self)
        switch (kind, VersionText.dotCount(bytes.rawSpan)) {
        case (.number, 0): return "; for versions compare with \(text).0.0"
        case (.number, 1): return "; for versions compare with \(text).0"
        default: return ""
        }
    }

    /// Meaning, other than a version, that a text has in many countries. The associated value is
    /// the spelling that a filter reads with this meaning.
    enum OtherMeaning: Equatable {
        /// A date with dots, the day first, such as `01.03.2024`.
        case date(String)
        /// A date with dots, the year first, such as `2024.03.01`. Some apps have such version
        /// numbers.
        case yearFirstDate(String)
        /// A number with dots between thousands, such as `1.000.000`. At least one part after a dot
        /// must begin with 0. Otherwise, as in `5.100.200`, the text is more likely a version.
        case number(String)
    }

    /// The other meaning of a version; nil if the value is of another kind or has no other meaning.
    /// If a user appends `.0` to the text, as in `01.03.2024.0`, the text has no other meaning. The
    /// appended part does not change the order of versions.
    var otherMeaning: OtherMeaning? {
        guard kind == .version else { return nil }
        let parts = String(decoding: bytes, as: UTF8.self).pieces(at: ".").map(String.init)
        if parts.count == 3, parts[2].utf8.count == 4, let date = Self.isoDate(parts.reversed()) {
            return .date(date)
        }
        if parts.count == 3, parts[0].utf8.count == 4, let date = Self.isoDate(parts) {
            return .yearFirstDate(date)
        }
        let (first, others) = (parts[0], parts.dropFirst())
        guard first.utf8.count <= 3, !first.hasPrefix("0"),
            others.allSatisfy({ $0.utf8.count == 3 }),
            others.contains(where: { $0.hasPrefix("0") })
        else { return nil }
        return .number(parts.joined())
    }

    /// Returns a date as `2024-03-01`; nil if the parts are not a year since 1900, a month and a
    /// day. If the second part is above 12, it is the day, and the third part is the month.
    private static func isoDate(_ parts: [String]) -> String? {
        let numbers = parts.compactMap { $0.utf8.count <= 4 ? Int($0) : nil }
        guard numbers.count == 3, (1900..<2100).contains(numbers[0]) else { return nil }
        let (month, day) =
            numbers[1] > 12 ? (numbers[2], numbers[1]) : (numbers[1], numbers[2])
        guard (1...12).contains(month), (1...31).contains(day) else { return nil }
        let two = { (number: Int) in number < 10 ? "0\(number)" : "\(number)" }
        return "\(numbers[0])-\(two(month))-\(two(day))"
    }

    /// Compares a text with this value: negative if the text precedes it, positive if it follows;
    /// nil if the text is not of this kind.
    func order(of text: RawSpan) -> Int? {
        switch kind {
        case .number(let own):
            guard let number = DecimalNumber(text) else { return nil }
            return DecimalNumber.order(of: number, in: text, and: own, in: bytes.rawSpan)
        case .version:
            guard VersionText.dotCount(text) != nil else { return nil }
            return VersionText.order(of: text, and: bytes.rawSpan)
        case .date(let own):
            guard let time = Self.date(text) else { return nil }
            // A time within the named day, minute or second neither precedes nor follows it.
            return time.first < own.first ? -1 : time.first > own.last ? 1 : 0
        }
    }

    /// Parses a date with hyphens, with or without a time. Seconds since 1970 are numbers here, not
    /// dates.
    private static func date(_ text: RawSpan) -> WrittenTime? {
        guard text.byteCount >= 10, text.byte(at: 4) == UInt8(ascii: "-") else { return nil }
        return WrittenTime(text)
    }
}

/// Exact decimal number in a text, as the location of its digits and its exponent.
///
///     -00120.50e3     the significant digits are `120.5`, the value is -0.1205 * 10^6
struct DecimalNumber: Sendable, Equatable {
    private var isNegative = false
    /// The range from the first to the last digit that is not 0; a point may be between them. Empty
    /// for 0.
    private var digits = 0..<0
    /// Power of 10 by which 0.DIGITS is multiplied.
    private var exponent = 0

    /// Maximum number of digits of a written exponent.
    private static let exponentDigitsLimit = 6

    /// - Returns: nil if the text does not have a form like `18`, `-0.5`, `.5` or `+1.25e-3`.
    init?(_ text: RawSpan) {
        let end = text.byteCount
        var offset = 0
        if offset < end, text.byte(at: offset) == UInt8(ascii: "-") {
            isNegative = true
            offset += 1
        } else if offset < end, text.byte(at: offset) == UInt8(ascii: "+") {
            offset += 1
        }
        let wholeStart = offset
        while offset < end, Self.isDigit(text.byte(at: offset)) { offset += 1 }
        let wholeEnd = offset
        if offset < end, text.byte(at: offset) == UInt8(ascii: ".") {
            offset += 1
            let start = offset
            while offset < end, Self.isDigit(text.byte(at: offset)) { offset += 1 }
            if offset == start { return nil }
        } else if wholeStart == wholeEnd {
            return nil
        }
        let mantissaEnd = offset
        guard let power = Self.power(text, from: offset) else { return nil }
        var (first, last) = (wholeStart, mantissaEnd)
        while first < last, !Self.isSignificant(text.byte(at: first)) { first += 1 }
        while last > first, !Self.isSignificant(text.byte(at: last - 1)) { last -= 1 }
        guard first < last else {
            isNegative = false
            return
        }
        digits = first..<last
        // After the point, each 0 before the first digit lowers the power by one.
        exponent = power + (first < wholeEnd ? wholeEnd - first : wholeEnd + 1 - first)
    }

    /// Parses the exponent at the end of a text; 0 if there is none, nil if the end is invalid.
    private static func power(_ text: RawSpan, from start: Int) -> Int? {
        let end = text.byteCount
        if start == end { return 0 }
        guard text.byte(at: start) | 0x20 == UInt8(ascii: "e") else { return nil }
        var offset = start + 1
        var isNegative = false
        if offset < end, text.byte(at: offset) == UInt8(ascii: "-") {
            isNegative = true
            offset += 1
        } else if offset < end, text.byte(at: offset) == UInt8(ascii: "+") {
            offset += 1
        }
        guard offset < end, end - offset <= exponentDigitsLimit else { return nil }
        var value = 0
        while offset < end {
            guard isDigit(text.byte(at: offset)) else { return nil }
            value = value * 10 + Int(text.byte(at: offset) - UInt8(ascii: "0"))
            offset += 1
        }
        return isNegative ? -value : value
    }

    /// Compares two numbers: negative if the first is smaller, 0 if they are equal.
    static func order(
        of first: DecimalNumber, in firstText: RawSpan, and second: DecimalNumber,
        in secondText: RawSpan
    ) -> Int {
        let (sign, otherSign) = (first.sign, second.sign)
        if sign != otherSign || sign == 0 { return sign - otherSign }
        if first.exponent != second.exponent {
            return first.exponent < second.exponent ? -sign : sign
        }
        var (offset, otherOffset) = (first.digits.lowerBound, second.digits.lowerBound)
        while true {
            let digit = first.digit(at: &offset, in: firstText)
            let otherDigit = second.digit(at: &otherOffset, in: secondText)
            if digit != otherDigit { return digit < otherDigit ? -sign : sign }
            if offset == first.digits.upperBound, otherOffset == second.digits.upperBound {
                return 0
            }
        }
    }

    private var sign: Int { digits.isEmpty ? 0 : isNegative ? -1 : 1 }

    /// Returns the next digit; 0 after the last one.
    private func digit(at offset: inout Int, in text: RawSpan) -> UInt8 {
        guard offset < digits.upperBound else { return UInt8(ascii: "0") }
        if text.byte(at: offset) == UInt8(ascii: ".") { offset += 1 }
        assert(offset < digits.upperBound, "the last significant byte is a digit")
        defer { offset += 1 }
        return text.byte(at: offset)
    }

    private static func isDigit(_ byte: UInt8) -> Bool { byte &- UInt8(ascii: "0") <= 9 }

    /// Whether a byte of a number without sign and exponent is a digit other than 0.
    private static func isSignificant(_ byte: UInt8) -> Bool {
        isDigit(byte) && byte != UInt8(ascii: "0")
    }
}

/// Versions: numbers with dots between them.
enum VersionText {
    /// Returns the number of dots of a version; nil if the text is not a version.
    static func dotCount(_ text: RawSpan) -> Int? {
        var dots = 0
        var wasDigit = false
        for offset in 0..<text.byteCount {
            let byte = text.byte(at: offset)
            if byte == UInt8(ascii: ".") {
                if !wasDigit { return nil }
                dots += 1
                wasDigit = false
            } else {
                guard byte &- UInt8(ascii: "0") <= 9 else { return nil }
                wasDigit = true
            }
        }
        return wasDigit ? dots : nil
    }

    /// Compares two versions: negative if the first is lower. Missing parts are 0.
    static func order(of first: RawSpan, and second: RawSpan) -> Int {
        var (offset, otherOffset) = (0, 0)
        while offset < first.byteCount || otherOffset < second.byteCount {
            let part = part(of: first, at: &offset)
            let otherPart = self.part(of: second, at: &otherOffset)
            // Without leading zeros, the longer of two numbers is larger.
            if part.count != otherPart.count { return part.count - otherPart.count }
            for offset in 0..<part.count {
                let digit = first.byte(at: part.lowerBound + offset)
                let otherDigit = second.byte(at: otherPart.lowerBound + offset)
                if digit != otherDigit { return digit < otherDigit ? -1 : 1 }
            }
        }
        return 0
    }

    /// Returns the range of the next number's digits without leading zeros, and advances past its
    /// dot.
    private static func part(of text: RawSpan, at offset: inout Int) -> Range<Int> {
        var start = offset
        while start < text.byteCount, text.byte(at: start) == UInt8(ascii: "0") { start += 1 }
        var end = start
        while end < text.byteCount, text.byte(at: end) != UInt8(ascii: ".") { end += 1 }
        offset = min(end + 1, text.byteCount)
        return start..<end
    }
}
