/// Returns the name that was probably meant: one that differs only in case, hyphens, underscores
/// and spaces, or else the nearest one.
///
/// If `name` has two to four letters, one letter may differ. If `name` is longer, two letters or a
/// third of the letters may differ, whichever is more. A transposition counts as one letter. Names
/// with more than three differences, such as `notification` and `complication`, are different words,
/// unless one is the beginning of the other.
///
/// - Returns: nil if no name is near enough.
package func nearestName(to name: String, among names: [String]) -> String? {
    let wanted = NearestName.plain(name)
    let scored = names.map { ($0, NearestName.plain($0)) }.map {
        ($0.0, NearestName.isSwap(wanted, $0.1) ? 1 : NearestName.distance(wanted, $0.1))
    }
    guard let best = scored.min(by: { $0.1 < $1.1 }) else { return nil }
    let (count, found) = (wanted.utf8.count, NearestName.plain(best.0))
    guard best.1 <= 3 || found.hasPrefix(wanted) || wanted.hasPrefix(found) else { return nil }
    return best.1 <= (count <= 4 ? min(1, count / 2) : max(2, count / 3)) ? best.0 : nil
}

/// The distance between names.
enum NearestName {
    /// Returns a name in lower case, without hyphens, underscores and spaces.
    static func plain(_ name: String) -> String {
        name.lowercased().filter { $0 != "-" && $0 != "_" && $0 != " " }
    }

    /// Returns whether the names differ only by a transposition of two adjacent letters.
    static func isSwap(_ first: String, _ second: String) -> Bool {
        let (left, right) = (Array(first.utf8), Array(second.utf8))
        guard left.count == right.count else { return false }
        let places = left.indices.filter { left[$0] != right[$0] }
        return places.count == 2 && places[1] == places[0] + 1
            && left[places[0]] == right[places[1]] && left[places[1]] == right[places[0]]
    }

    /// Returns the minimum number of insertions, deletions and substitutions between two words.
    static func distance(_ first: String, _ second: String) -> Int {
        let target = Array(second.utf8)
        var row = Array(0...target.count)
        for (index, letter) in first.utf8.enumerated() {
            var diagonal = row[0]
            row[0] = index + 1
            for column in target.indices {
                let substitution = diagonal + (letter == target[column] ? 0 : 1)
                diagonal = row[column + 1]
                row[column + 1] = min(substitution, row[column] + 1, diagonal + 1)
            }
        }
        assert(
            row[target.count] >= abs(first.utf8.count - target.count), "each added letter counts")
        assert(
            row[target.count] <= max(first.utf8.count, target.count), "at most each letter differs")
        return row[target.count]
    }
}
