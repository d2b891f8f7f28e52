/// The name that was probably meant.
package enum NearestName {
    /// The one within two letters' distance (one for names of up to four letters); nil where none is,
    /// or the name is one of them.
    package static func of(_ name: String, among names: [String]) -> String? {
        let plain = { (text: String) in
            text.lowercased().filter { $0 != "-" && $0 != "_" && $0 != " " }
        }
        if let same = names.first(where: { plain($0) == plain(name) }) { return same }
        let scored = names.map { (distance(name, $0), $0) }
        guard let best = scored.min(by: { $0.0 < $1.0 }) else { return nil }
        let limit = min(name.utf8.count, best.1.utf8.count) <= 4 ? 1 : 2
        return best.0 <= limit || (best.0 == 2 && isSwap(name, best.1)) ? best.1 : nil
    }

    /// Whether the names are the same but for two neighbouring letters in the wrong order.
    private static func isSwap(_ first: String, _ second: String) -> Bool {
        let (left, right) = (Array(first.utf8), Array(second.utf8))
        guard left.count == right.count else { return false }
        let places = left.indices.filter { left[$0] != right[$0] }
        return places.count == 2 && places[1] == places[0] + 1
            && left[places[0]] == right[places[1]] && left[places[1]] == right[places[0]]
    }

    /// The number of letters to insert, drop or change to get from one word to the other.
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
        return row[target.count]
    }
}

/// The name that was probably meant: the one within a few letters' distance.
package func nearestName(to name: String, among names: [String]) -> String? {
    let scored = names.map { (NearestName.distance(name, $0), $0) }
    guard let best = scored.min(by: { $0.0 < $1.0 }) else { return nil }
    // Of three letters two are too many to be a slip.
    return best.0 <= max(min(2, name.count / 2), name.count / 3) ? best.1 : nil
}
