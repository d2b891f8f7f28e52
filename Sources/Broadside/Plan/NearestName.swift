import Campaign

/// The name that was probably meant: the one within a few letters' distance.
package func nearestName(to name: String, among names: [String]) -> String? {
    let scored = names.map { (NearestName.distance(name, $0), $0) }
    guard let best = scored.min(by: { $0.0 < $1.0 }) else { return nil }
    // Of three letters two are too many to be a slip.
    return best.0 <= max(min(2, name.count / 2), name.count / 3) ? best.1 : nil
}
