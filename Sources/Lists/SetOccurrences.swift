internal import BroadsideSupport

/// A record of which texts of a condition's set occur in the condition's column of a list. It also
/// has the first different values of this column.
struct SetOccurrences: Sendable {
    /// Whether each text of the set occurs.
    private var occurs: [Bool]
    /// Number of texts of the set that do not occur.
    private(set) var absentCount: Int
    /// The first different values of the column.
    private var values = DistinctValues(limit: SetOccurrences.valuesLimit)

    /// Maximum number of values that are kept.
    private static let valuesLimit = 4

    /// - Parameter count: Number of texts of the set.
    init(_ count: Int) {
        occurs = Array(repeating: false, count: count)
        absentCount = count
    }

    /// Whether all texts of the set occur.
    var isComplete: Bool { absentCount == 0 }

    /// Records that the list has a text of the set.
    mutating func note(_ index: Int) {
        guard !occurs[index] else { return }
        occurs[index] = true
        absentCount -= 1
        assert(absentCount >= 0, "each text of the set is recorded once")
    }

    /// Records a value of the column.
    mutating func sample(_ value: RawSpan) { values.note(value) }

    /// Description of the first values of the column; nil if it has none.
    var sampledValues: String? {
        guard !values.values.isEmpty else { return nil }
        let texts = values.values.map {
            $0.isEmpty ? "an empty value" : ForeignText.escapedName(tokenExcerpt($0))
        }
        return "the column has \(texts.joined(separator: ", "))"
            + (values.hasMore ? " and others" : "")
    }

    /// Indices of the texts that do not occur.
    var absent: [Int] { occurs.indices.filter { !occurs[$0] } }
}

extension RowFilter.Condition {
    /// Result of the condition for a value that is in its set; nil for `<`, `<=`, `>` and `>=`.
    var setMatch: RowFilter.Match? {
        switch comparison {
        case .equal: .holds
        case .notEqual: .fails
        case .less, .lessOrEqual, .greater, .greaterOrEqual: nil
        }
    }

    /// Returns a warning about texts of the set that no row has; nil if there are none.
    ///
    /// There is no warning about an absent empty text, because `!= ""` is a precaution. With `=`,
    /// there is no warning if all texts are absent: see `selectsNobody`.
    func absenceWarning(_ occurrences: SetOccurrences) -> String? {
        let absent = occurrences.absent.map { texts[$0] }.filter { !$0.isEmpty }
        guard let first = absent.first, comparison == .notEqual || absent.count < texts.count
        else { return nil }
        let isOne = absent.count == 1
        let shown = ForeignText.escapedName(tokenExcerpt(first))
        let problem =
            "no row has "
            + (isOne
                ? "the value '\(shown)'"
                : "\(grouped(absent.count)) of these values, such as '\(shown)'")
        guard comparison == .notEqual else { return problem + ": check the spelling" }
        return problem + ", so \(isOne ? "it excludes" : "they exclude") no row: "
            + (occurrences.sampledValues ?? "check the spelling")
    }

    /// Returns the problem of a condition with `=` that selects no row of a list, probably because
    /// its values are misspelled; nil if it selects some.
    func selectsNobody(_ occurrences: SetOccurrences, of list: String) -> String? {
        guard comparison == .equal, occurrences.absent.count == texts.count else { return nil }
        let values =
            texts.count == 1
            ? texts[0].isEmpty
                ? "an empty value"
                : "the value '\(ForeignText.escapedName(tokenExcerpt(texts[0])))'"
            : "any of these values"
        return "no row of \(list) has \(values), so no device would get this campaign: "
            + (occurrences.sampledValues ?? "check the spelling")
    }

    /// Warning that a text such as `2024.03.01`, which may be a date, is compared as a version; nil
    /// for other texts.
    var versionWarning: String? {
        guard let bound, case .yearFirstDate(let date)? = bound.otherMeaning else { return nil }
        let text = printable(String(decoding: bound.text, as: UTF8.self))
        return "it is compared with versions: for dates write \(date), here and in the list; for "
            + "versions write \(text).0"
    }
}
