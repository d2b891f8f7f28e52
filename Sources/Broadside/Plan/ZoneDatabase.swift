import BroadsidePolicy
import BroadsideSupport
import Synchronization

/// The system's time zones: files of the IANA database in a directory, each read once.
final class ZoneDatabase: Sendable {
    /// Directory of the database.
    static let directory = "/usr/share/zoneinfo"

    private let directory: String
    private let known = Mutex<[String: TimeZoneRules?]>([:])

    /// Names that each version of the package tzdata has.
    private static let usualNames = ["UTC", "Europe/Berlin"]
    /// Name of the machine's own zone in the database. It is not accepted, so that a list means the
    /// same on each machine.
    private static let machineName = "localtime"

    /// Limit on the zones that are kept in memory. The files of other zones are read each time.
    private static let knownLimit = 8_192
    /// Maximum size of a zone's file, in bytes. The files of the database are smaller than 4,000
    /// bytes.
    private static let fileLimit = 1 << 18

    init(directory: String = ZoneDatabase.directory) { self.directory = directory }

    /// Returns the rules of a zone such as `Europe/Berlin`; nil if the system does not know it. A
    /// name without a file, such as `Asia/Calcutta`, has the rules of the zone to which it is a
    /// link.
    func rules(named name: String) -> TimeZoneRules? {
        if let found = known.withLock({ $0[name] }) { return found }
        let rules = read(name)
        known.withLock { if $0.count < Self.knownLimit { $0[name] = .some(rules) } }
        return rules
    }

    private func read(_ name: String) -> TimeZoneRules? {
        guard Self.isName(name), name != Self.machineName else { return nil }
        if let rules = rules(inFile: name) { return rules }
        return ZoneLinks.target(of: name).flatMap { rules(inFile: $0) }
    }

    private func rules(inFile name: String) -> TimeZoneRules? {
        guard
            let bytes = try? readFile(
                "\(directory)/\(name)", option: "zone-default", limit: Self.fileLimit)
        else { return nil }
        return TimeZoneRules(file: bytes)
    }

    /// Whether a text has the form of a zone's name: parts of letters, digits, `_`, `+` and `-`,
    /// separated by slashes.
    static func isName(_ text: String) -> Bool {
        let parts = text.utf8.split(separator: UInt8(ascii: "/"), omittingEmptySubsequences: false)
        return parts.allSatisfy { part in
            !part.isEmpty
                && part.allSatisfy { byte in
                    (0x61...0x7A).contains(byte | 0x20) || (0x30...0x39).contains(byte)
                        || byte == 0x5F || byte == 0x2B || byte == 0x2D
                }
        }
    }

    /// Advice about a zone that the system does not know, if the system lacks other zones, too; nil
    /// if it has the usual zones.
    var packageAdvice: String? {
        guard Self.usualNames.contains(where: { rules(named: $0) == nil }) else { return nil }
        return "\(directory) lacks the usual time zones: install the package tzdata"
    }

    /// Returns the rules of the zone that an option names.
    ///
    /// - Throws: Exit code 2 if the system does not know the zone.
    func rules(of name: String, option: String) throws(BroadsideError) -> TimeZoneRules {
        if let rules = rules(named: name) { return rules }
        if let packageAdvice {
            throw .usage(option, "needs the system's time zones, but \(packageAdvice)")
        }
        throw .usage(
            option,
            "'\(printable(name, limit: 60))' is not a time zone of this system: name one such as "
                + "Europe/Berlin, as in \(directory)"
                + (UTCOffset.advice(for: name).map { ". \($0)" } ?? ""))
    }

    /// Returns the error for a local zone that the C library does not know.
    ///
    /// - Parameter zone: Value of the environment variable `TZ`.
    func unknownLocalZone(_ zone: String) -> BroadsideError {
        let name = zone.hasPrefix(":") ? String(zone.dropFirst()) : zone
        let advice: String
        if let packageAdvice {
            advice = packageAdvice
        } else if rules(named: name) == nil {
            advice = "set TZ to a zone such as Europe/Berlin, as in \(directory)"
        } else if let current = ZoneLinks.target(of: name) {
            advice = "set TZ to \(current), the zone's present name"
        } else {
            advice = "the zone is in \(directory), so unset TZDIR"
        }
        return .request(
            "the environment variable TZ is '\(printable(zone, limit: 60))', a time zone that this "
                + "system does not know, so dates would be those of UTC: \(advice)")
    }

    /// Checks that the system knows the zones of a campaign that continues. Otherwise, the run would
    /// settle rows of these zones as invalid, or would send them at the time of another zone.
    ///
    /// - Parameter names: Zones that rows of the campaign have, from the ledger.
    /// - Throws: Exit code 2 if the system lacks a zone.
    func check(zonesOfCampaign names: [String]) throws(BroadsideError) {
        let missing = names.filter { rules(named: $0) == nil }
        guard let first = missing.first else { return }
        let others = missing.count - 1
        let more =
            others < 1 ? "" : others == 1 ? " and 1 other zone" : " and \(others) other zones"
        throw .request(
            "rows of this campaign are in the time zone \(printable(first, limit: 60))\(more), which "
                + "this system lacks: install or update the package tzdata (on Debian 13 and Ubuntu "
                + "24.04, also tzdata-legacy), then resume")
    }
}
