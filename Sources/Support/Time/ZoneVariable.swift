internal import Glibc

/// The time zone that the environment variable `TZ` names.
///
/// If the C library does not know the zone, it takes local time for UTC and reports no error.
package enum ZoneVariable {
    /// Directory of the zones' files.
    private static let usualDirectory = "/usr/share/zoneinfo"
    /// The file of the machine's own zone. If it is missing, the machine's time is UTC.
    private static let machineFile = "/etc/localtime"
    /// First bytes of a zone's file (RFC 9636, 3.1).
    private static let signature = Array("TZif".utf8)
    /// Names of UTC in the IANA database, in small letters. They need no file, because the C
    /// library takes every zone without a file for UTC.
    private static let namesOfUTC: Set<String> = [
        "utc", "uct", "gmt", "gmt0", "gmt+0", "gmt-0", "zulu", "universal", "greenwich",
    ]

    /// Half a year, in milliseconds.
    private static let halfYear: UInt64 = 182 * 86_400_000

    /// Value of `TZ` if it names a zone that this system does not know, so that local time is UTC;
    /// nil if the zone is known, or `TZ` is not set.
    package static func unknownZone(at milliseconds: UInt64) -> String? {
        // A library that knows the zone, from whichever folder, gives it an offset in winter or in
        // summer.
        guard let value = SystemCall.environment("TZ"),
            [milliseconds, milliseconds &+ halfYear].allSatisfy({
                ClockZone.local(at: $0).offset == 0
            }),
            !isKnown(value, directory: SystemCall.environment("TZDIR") ?? usualDirectory)
        else { return nil }
        return value
    }

    /// Whether the C library can follow a value of `TZ`: the name or path of a zone's file, a rule
    /// as in POSIX, or UTC.
    ///
    /// - Parameters:
    ///   - value: The value, such as `Europe/Berlin`, `:Europe/Berlin` or
    ///     `CET-1CEST,M3.5.0,M10.5.0`.
    ///   - directory: Directory of the zones' files.
    static func isKnown(_ value: String, directory: String) -> Bool {
        // The C library ignores a colon, and takes an empty value for UTC.
        let zone = value.hasPrefix(":") ? String(value.dropFirst()) : value
        if zone.isEmpty || zone == machineFile || isRule(zone) { return true }
        if isZoneFile(zone.hasPrefix("/") ? zone : "\(directory)/\(zone)") { return true }
        let small = zone.lowercased()
        return namesOfUTC.contains(small.hasPrefix("etc/") ? String(small.dropFirst(4)) : small)
    }

    /// Whether a text begins as a rule in POSIX (Base Definitions, 8.3): a name, then the offset of
    /// standard time.
    private static func isRule(_ text: String) -> Bool {
        func isLetter(_ byte: UInt8) -> Bool { (0x61...0x7A).contains(byte | 0x20) }
        func isDigit(_ byte: UInt8) -> Bool { (0x30...0x39).contains(byte) }
        func isSign(_ byte: UInt8) -> Bool { byte == 0x2B || byte == 0x2D }
        var rest = Array(text.utf8)[...]
        let name: ArraySlice<UInt8>
        if rest.first == UInt8(ascii: "<") {
            name = rest.dropFirst().prefix { isLetter($0) || isDigit($0) || isSign($0) }
            rest = rest.dropFirst(name.count + 1)
            guard rest.popFirst() == UInt8(ascii: ">") else { return false }
        } else {
            name = rest.prefix(while: isLetter)
            rest = rest.dropFirst(name.count)
        }
        if let first = rest.first, isSign(first) { rest = rest.dropFirst() }
        return name.count >= 3 && rest.first.map(isDigit) ?? false
    }

    private static func isZoneFile(_ path: String) -> Bool {
        let descriptor = SystemCall.open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK)
        guard descriptor >= 0 else { return false }
        defer { close(descriptor) }
        var bytes = [UInt8](repeating: 0, count: signature.count)
        return SystemCall.read(descriptor, &bytes) == bytes.count && bytes == signature
    }
}
