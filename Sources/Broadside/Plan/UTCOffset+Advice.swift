import BroadsidePolicy

extension UTCOffset {
    /// Sentence of advice about a text in place of a time zone's name, without its period; nil if the text is not an offset, or if
    /// no zone's name states it.
    static func advice(for text: String) -> String? {
        guard let offset = UTCOffset(text), let name = offset.zoneName else { return nil }
        guard offset.minutes != 0 else { return "For an offset of 0, write UTC" }
        return "For a fixed offset of \(offset.text), write \(name) (its sign is reversed)"
    }

    /// Warning about zones such as `Etc/GMT-8`, which is UTC+8; nil if there are none.
    static func warning(ofZones names: [String]) -> String? {
        let meanings = names.compactMap { name in
            UTCOffset(zone: name).map { "\(name) is \($0.text)" }
        }
        guard !meanings.isEmpty else { return nil }
        let others = meanings.count - shownLimit
        let more = others < 1 ? "" : others == 1 ? " (and 1 other)" : " (and \(others) others)"
        return "broadside: warning: the sign in the name of such a time zone is reversed: "
            + meanings.prefix(shownLimit).joined(separator: ", ") + more
    }

    /// Limit on the zones that a warning names.
    private static let shownLimit = 3
}
