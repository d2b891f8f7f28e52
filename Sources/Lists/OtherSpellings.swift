internal import BroadsideSupport

/// A record of values that a condition with `=` or `!=` distinguishes from the texts of its set,
/// although they probably mean the same: `TRUE`, `yes` or `1` for `true`, `DE` for `de`, and `Zürich`
/// with an accent that is a character of its own.
///
/// The caller passes only values that decide whether their row is sent.
struct OtherSpellings: Sendable {
    /// Rows whose values are other spellings of the set's texts.
    struct Found: Sendable {
        /// Number of rows.
        private(set) var rows: UInt64 = 0
        /// Line of the first row.
        private(set) var firstLine: UInt64 = 0
        /// Index of the text in the set that the first row's value spells in another way.
        private(set) var text = 0
        /// The first different values.
        private(set) var spellings = DistinctValues(limit: OtherSpellings.spellingsLimit)

        mutating func note(_ value: RawSpan, of text: Int, line: UInt64) {
            if rows == 0 { (firstLine, self.text) = (line, text) }
            rows += 1
            spellings.note(value)
        }

        /// The rows of both records.
        func joined(with other: Found) -> Found {
            guard rows > 0 else { return other }
            guard other.rows > 0 else { return self }
            var joined = firstLine < other.firstLine ? self : other
            let later = firstLine < other.firstLine ? other : self
            joined.rows += later.rows
            for value in later.spellings.values { joined.spellings.note(value.rawSpan) }
            return joined
        }
    }

    /// Maximum number of different values that are kept.
    static let spellingsLimit = 16

    /// The set's texts with ASCII letters in lower case, sorted for searching, each with the index
    /// of its text in the set.
    private let folded: [(text: [UInt8], index: Int)]
    /// The set's texts as a reader sees them, with the index of each.
    private let visible: [String: Int]
    /// Whether a text of the set may have hidden characters or an unusual Unicode form. Any value
    /// may then look like it.
    private let hasHiddenTexts: Bool
    /// The set's text for true and its text for false, each with its index; nil if there is none. If
    /// the set has several, a word is preferred to a number, and a number to a letter.
    private let trueText: (spelling: BooleanSpelling, index: Int)?
    private let falseText: (spelling: BooleanSpelling, index: Int)?
    /// Whether the values of the column have to be passed to `noteInColumn`.
    private(set) var isColumnWatched: Bool
    /// Whether each value of the column so far is empty or a spelling of a boolean. Stays true if
    /// the column is not watched.
    private var isBooleanColumn = true
    /// Spellings of a boolean in any column.
    private var certain = Found()
    /// Spellings of a boolean if the column has only such values.
    private var probable = Found()
    /// Values that differ only in letter case from a text that is not a spelling of a boolean.
    private(set) var otherCase = Found()
    /// Values that look like a text of the set, but have hidden characters or another Unicode form.
    private(set) var lookalikes = Found()

    /// - Parameter texts: The condition's set; empty for a condition without one.
    init(of texts: [[UInt8]]) {
        var folded: [(text: [UInt8], index: Int)] = []
        var booleans: [(spelling: BooleanSpelling, index: Int)] = []
        for (index, text) in texts.enumerated() {
            folded.append((text: text.map(Self.lowerCase), index: index))
            if let spelling = BooleanSpelling(text.rawSpan) {
                booleans.append((spelling: spelling, index: index))
            }
        }
        folded.sort { RowFilter.order(of: $0.text.rawSpan, and: $1.text.rawSpan) < 0 }
        self.folded = folded
        visible = Dictionary(
            texts.enumerated().map { (HiddenCharacters.visibleText($1.rawSpan), $0) },
            uniquingKeysWith: { first, _ in first })
        hasHiddenTexts = texts.contains { HiddenCharacters.mayBe(in: $0.rawSpan) }
        let ordered =
            booleans.filter { $0.spelling.isWord } + booleans.filter { $0.spelling.isNumber }
            + booleans.filter { !$0.spelling.isWord && !$0.spelling.isNumber }
        let trueText = ordered.first { $0.spelling.isTrue }
        let falseText = ordered.first { !$0.spelling.isTrue }
        (self.trueText, self.falseText) = (trueText, falseText)
        isColumnWatched = trueText?.spelling.isWord == false || falseText?.spelling.isWord == false
    }

    /// Spellings of a boolean.
    var booleans: Found { isBooleanColumn ? certain.joined(with: probable) : certain }

    /// Records a value of the column.
    mutating func noteInColumn(_ value: RawSpan) {
        guard value.byteCount > 0, BooleanSpelling(value) == nil else { return }
        isBooleanColumn = false
        isColumnWatched = false
    }

    /// Records the value of a row, without surrounding blanks, if it is another spelling of a text
    /// in the set.
    ///
    /// - Parameter value: A value that is not in the set.
    mutating func note(_ value: RawSpan, line: UInt64) {
        if let known = index(ofFolded: value) {
            if BooleanSpelling(value) == nil {
                otherCase.note(value, of: known, line: line)
            } else {
                certain.note(value, of: known, line: line)
            }
            return
        }
        if hasHiddenTexts || HiddenCharacters.mayBe(in: value),
            let known = visible[HiddenCharacters.visibleText(value)]
        {
            return lookalikes.note(value, of: known, line: line)
        }
        guard let spelling = BooleanSpelling(value),
            let known = spelling.isTrue ? trueText : falseText
        else { return }
        if spelling.isCertain(for: known.spelling) {
            certain.note(value, of: known.index, line: line)
        } else {
            probable.note(value, of: known.index, line: line)
        }
    }

    /// Index of the text in the set that differs from a value only in the case of ASCII letters;
    /// nil if there is none.
    private func index(ofFolded value: RawSpan) -> Int? {
        var (low, high) = (0, folded.count)
        while low < high {
            let middle = (low + high) / 2
            let candidate = folded[middle].text
            let order = Self.order(of: candidate.rawSpan, andFolded: value)
            if order == 0 { return folded[middle].index }
            if order < 0 { low = middle + 1 } else { high = middle }
        }
        return nil
    }

    /// Compares a text in lower case with a value whose ASCII letters are read as lower case, in
    /// the order of `RowFilter.order`.
    private static func order(of text: RawSpan, andFolded value: RawSpan) -> Int {
        if text.byteCount != value.byteCount { return text.byteCount - value.byteCount }
        for offset in 0..<text.byteCount {
            let difference =
                Int(text.byte(at: offset)) - Int(lowerCase(value.byte(at: offset)))
            if difference != 0 { return difference }
        }
        return 0
    }

    private static func lowerCase(_ byte: UInt8) -> UInt8 {
        byte >= UInt8(ascii: "A") && byte <= UInt8(ascii: "Z") ? byte | 0x20 : byte
    }
}

extension RowFilter.Condition {
    /// Returns the problem of a condition with `!=` that keeps rows although their values are other
    /// spellings of its booleans, or look like its texts; nil if there are no such rows.
    ///
    /// - Parameter spellings: Values of rows that all conditions keep.
    func keepsOtherSpellings(_ spellings: OtherSpellings) -> String? {
        guard comparison == .notEqual else { return nil }
        if spellings.lookalikes.rows > 0 {
            return subject(of: spellings.lookalikes, Self.lookalike)
                + ", and would get this campaign, because values are compared byte for byte: correct "
                + "the list, or name such values in the condition, too; to keep them, name the values "
                + "that you want with ="
        }
        let found = spellings.booleans
        guard found.rows > 0 else { return nil }
        let other = RowFilter.Condition(
            column: column, comparison: .notEqual, texts: found.spellings.values, bound: nil)
        return subject(of: found, "another spelling of a value")
            + ", and would get this campaign, because values are compared byte for byte: to exclude "
            + "\(found.rows == 1 ? "it" : "them"), add --where "
            + "'\(printable(other.canonicalText))'; to keep \(found.rows == 1 ? "it" : "them"), "
            + "name the values that you want with ="
    }

    /// Returns warnings about values that are probably other spellings of the set's texts.
    ///
    /// - Parameter spellings: Values that decide whether their rows are sent.
    func spellingWarnings(_ spellings: OtherSpellings) -> [String] {
        let effect =
            comparison == .notEqual
            ? ": values are compared byte for byte, so this condition keeps such rows. To exclude "
                + "them, name each spelling"
            : ": values are compared byte for byte, so this condition excludes such rows. To send "
                + "them, name each spelling"
        let (booleans, otherCase) = (spellings.booleans, spellings.otherCase)
        var warnings: [String] = []
        if spellings.lookalikes.rows > 0 {
            warnings.append(
                subject(of: spellings.lookalikes, Self.lookalike)
                    + ": values are compared byte for byte, so this condition "
                    + "\(comparison == .notEqual ? "keeps" : "excludes") such rows")
        }
        if booleans.rows > 0 {
            warnings.append(subject(of: booleans, "another spelling of a value") + effect)
        }
        if otherCase.rows > 0 {
            warnings.append(subject(of: otherCase, "another letter case of a value") + effect)
        }
        return warnings
    }

    private static let lookalike =
        "a value with invisible characters, or in another Unicode form than a value"

    /// Subject of a message, such as `2 rows have another spelling of a value of this condition, the
    /// first on line 3 ('TRUE' instead of 'true')`.
    private func subject(of found: OtherSpellings.Found, _ what: String) -> String {
        let value = HiddenCharacters.shown(tokenExcerpt(found.spellings.values[0]))
        let text = HiddenCharacters.shown(tokenExcerpt(texts[found.text]))
        let rows = found.rows == 1 ? "1 row has" : "\(grouped(found.rows)) rows have"
        return "\(rows) \(what) of this condition, \(found.rows == 1 ? "" : "the first ")on line "
            + "\(found.firstLine) ('\(value)' instead of '\(text)')"
    }
}
